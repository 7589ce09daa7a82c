// docs/legacy.md, made from the rows: what 2.4.x had, what there is for it now, and what the gateway does with it.
import { operationsText } from './advice.ts'
import { legacyRows } from './map.ts'
import { groups, type LegacyRow } from './row.ts'

const intro = `# The legacy 2.4.x API

Made from the rows in \`src/legacy/map.ts\` by \`npm run generate\`; one row for each line of
[spec.md](spec.md) R50. \`svc3 migrate map\` prints the same.

Automation that was written for 2.4.x has three helpers:

- **The gateway** answers the old paths. Those with a replacement are carried out by the same handlers as the requests that
  replace them: the same permissions, rules, events. It works in one namespace (\`legacy.namespace\`, \`svc-default\` unless set
  otherwise) with the token of a user or of a service account. Every answer carries \`Deprecation\`, \`Sunset\` and \`Link\` (the
  request that takes its place, as \`successor-version\`; where there is none, the row in \`GET /api/v1/legacy\`, which shows these tables to anyone). It
  is on in \`svc3 dev\`; \`"legacy": {"enabled": true}\` in \`config.json\` turns it on in
  \`svc3 server\`. Where it is off, every legacy path answers 410.
- **\`svc3 migrate scan PATH…\`** finds legacy calls in scripts, programs, pipelines, Postman collections and access logs, and
  says for each what takes its place. It ends with 1 when it found any.
- **\`svc3 migrate usage\`** tells an administrator who still calls what, so that the gateway can be switched off some day.

Answers are \`{"message":"","help":{},"errors":[], …}\`; a refusal has \`errors\` and its status, and \`help\` says what to do. What
was removed answers 410, what never was, 404. Names of VMs may be their ids. Bodies may be JSON or a form, whatever their
Content-Type says; bodies of GET are not read. Slashes before and behind a path make no difference. The header \`orka-licensekey\` is ignored.

A deployment takes its name from its configuration; while that name is taken, and for replicas, one is generated
(\`NAME-x1y2z\`). All of them go by the name of the configuration, each by its own id. \`save\`, \`commit\`, \`copy\` and \`pull\` answer
when the image is ready. A deployment that no node can take is refused at once, and leaves
nothing; so does one whose client goes away.
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
  const tables = groups.map((group) => {
    const rows = legacyRows.filter((row) => row.group === group)
    return `\n## ${group}\n\n| 2.4.x | 3.0 | Command | Gateway |\n|---|---|---|---|\n${rows.map(line).join('\n')}\n`
  })
  return `${intro}${tables.join('')}${notes}`
}

const notes = `
## Notes

- \`POST /token\` answers with a token where the built-in identity provider is in use, by its rules against guessing; otherwise
  410. The token lasts an hour, as every user's does.
- \`GET /resources/iso/list-remote\` is mapped to \`remoteimages\` by [spec.md](spec.md) R50. The gateway answers with both: \`images\`
  as written, \`isos\` from \`remoteisos\`.
- \`orka_vm_name\` has at most 38 characters, as in 2.4.x. A VM has as many vCPUs as cores: where
  \`vcpu_count\` differs from \`orka_cpu_core\`, the cores win, and \`vcpu_count\` counts only where they are not named.
  \`orka_image\` stands for \`orka_base_image\` where that is not named: disks have no names of their own. \`io_boost: false\` gives Intel-based VMs the old disk devices;
  others always have the boost.
- Texts that clients look for are as they were: \`No available nodes with sufficient CPU.\`, \`Requested CPU is not available in the
  cluster\`, \`No VM configurations exist\`.
`
