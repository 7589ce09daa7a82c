// Findings as SARIF 2.1.0, which code hosts show next to the lines of a change.
import { reasonFor } from '../../../legacy/advice.ts'
import { legacyRows } from '../../../legacy/map.ts'
import { replacementText, type Scanned } from './advised.ts'

export function sarifOf(findings: readonly Scanned[], version: string): unknown {
  const used = new Set(findings.map(({ documentation }) => documentation.split('#')[1]))
  const rules = legacyRows
    .filter(({ anchor }) => used.has(anchor))
    .map((row) => ({
      id: row.anchor,
      shortDescription: {
        text: `${row.calls.map(({ method, path }) => `${method} ${path}`).join(', ')} is a call of the 2.4.x API`,
      },
      help: { text: reasonFor(row) ?? row.operations.map(({ method, path }) => `use ${method} ${path}`).join(' and ') },
      defaultConfiguration: { level: levelOf(row.fate === 'replaced') },
    }))
  const results = findings.map((finding) => {
    const artifactLocation = { uri: finding.file.split('/').map(encodeURIComponent).join('/') }
    const region = { startLine: finding.line, startColumn: finding.column }
    return {
      ruleId: finding.documentation.split('#')[1],
      level: finding.confidence === 'possible' ? 'note' : levelOf(finding.isReplaced),
      properties: { confidence: finding.confidence },
      message: { text: messageOf(finding) },
      locations: [{ physicalLocation: { artifactLocation, region } }],
    }
  })
  const tool = { driver: { name: 'svc3 migrate scan', version, rules } }
  return { $schema: 'https://json.schemastore.org/sarif-2.1.0.json', version: '2.1.0', runs: [{ tool, results }] }
}

const levelOf = (isReplaced: boolean): string => (isReplaced ? 'warning' : 'error')

function messageOf(finding: Scanned): string {
  const times = finding.count === undefined ? '' : ` (${finding.count} times)`
  const commands = finding.commands.length === 0 ? '' : `; on the command line: ${finding.commands.join('; ')}`
  return `${finding.call}${times}: ${finding.isReplaced ? 'use ' : ''}${replacementText(finding)}${commands}`
}
