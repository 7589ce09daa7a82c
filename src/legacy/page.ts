// Generates docs/reference/orka-2.4.md from the rows.
import { operationsText } from './advice.ts'
import { rowsByGroup } from './map.ts'
import type { LegacyRow } from './row.ts'

const intro = `# Orka 2.4: every call and what replaces it

Generated from \`src/legacy/map.ts\` by \`npm run generate\`; one row for each line of [spec.md](../spec.md) R50. \`svc3 migrate map\` prints the
same. How to move: [Coming from Orka 2.4](../coming-from-orka-2.4.md).

## The gateway

Calls with a replacement are carried out by the same handlers, with the same permissions, rules and events, in one namespace
(\`legacy.namespace\`), with the token of a user or a service account. Every response carries \`Deprecation\`, \`Sunset\` and \`Link\` (to the
replacement, or to \`GET /api/v1/legacy\`, which shows these tables to anyone).

- Responses are \`{"message":"","help":{},"errors":[], …}\`. A refusal has \`errors\` and its status, and \`help\` says what to do. Removed calls
  answer 410, unknown ones 404.
- VMs may be named by their ids. Bodies may be JSON or a form, whatever their Content-Type; bodies of GET are not read. Extra slashes are
  ignored, and so is the header \`orka-licensekey\`.
- A deployment takes its name from its configuration; if that is taken, and for replicas, one is generated (\`NAME-x1y2z\`). \`save\`,
  \`commit\`, \`copy\` and \`pull\` answer when the image is ready. A deployment that no node can take is refused at once, and leaves nothing behind.
`

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``

function line(row: LegacyRow): string {
  const calls = row.calls.map(({ method, path }) => code(`${method} ${path}`)).join('<br>')
  const by = row.operations.map((each) => code(operationsText([each]))).join('<br>')
  const fates: Readonly<Record<LegacyRow['fate'], string>> = {
    replaced: by,
    removed: `Removed: ${row.advice}${by === '' ? '' : `<br>${by}`}`,
    'no-endpoint': `No endpoint: ${row.advice}`,
  }
  const kept = row.kept === undefined ? '' : `<br>Kept: ${row.kept}`
  const commands = row.commands.map(code).join('<br>')
  const answer = row.fate === 'replaced' ? 'carried out' : row.kept === undefined ? '410' : 'see left'
  return `| <a id="${row.anchor}"></a>${calls} | ${fates[row.fate]}${kept} | ${commands} | ${answer} |`
}

export function legacyPage(): string {
  const tables = Array.from(
    rowsByGroup,
    ([group, rows]) =>
      `\n## ${group}\n\n| 2.4.x | 3.0 | Command | Gateway |\n|---|---|---|---|\n${rows.map(line).join('\n')}\n`,
  )
  return `${intro}${tables.join('')}${notes}`
}

const notes = `
## Notes

- \`POST /token\` works with the built-in identity provider, with its limits against guessing; otherwise it answers 410. The
  token lasts an hour.
- \`GET /resources/iso/list-remote\` is mapped to \`remoteimages\` by [spec.md](../spec.md) R50. The gateway answers with both: \`images\`
  as written, \`isos\` from \`remoteisos\`.
- \`orka_vm_name\` has at most 38 characters, as in 2.4.x. A VM has as many vCPUs as cores: if
  \`vcpu_count\` differs from \`orka_cpu_core\`, the cores win.
  \`orka_image\` is used if \`orka_base_image\` is not set. \`io_boost: false\` gives Intel-based VMs the old disk devices; others always have
  the boost.
- Texts that clients match are unchanged: \`No available nodes with sufficient CPU.\`, \`Requested CPU is not available in the
  cluster\`, \`No VM configurations exist\`.
`
