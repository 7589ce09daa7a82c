// What an operator may set, with the defaults; read from `config.json` in the data folder.

import { Ajv } from 'ajv'
import * as t from 'typebox'
import { publicAliases } from '../rules/names.ts'

const Settings = t.Object(
  {
    limits: t.Object(
      {
        bodyBytes: t.Integer({ minimum: 1_024, maximum: 64 * 1_048_576, default: 1_048_576 }),
        requestsPerMinute: t.Integer({ minimum: 1, default: 60_000, description: 'For each token' }),
        anonymousPerMinute: t.Integer({
          minimum: 1,
          default: 600,
          description: 'For each address without a good token',
        }),
        watches: t.Integer({ minimum: 1, default: 2_000, description: 'Open at once' }),
      },
      { additionalProperties: false, default: {} },
    ),
    compat: t.Object(
      { namespaceAliases: t.Record(t.String(), t.String(), { default: publicAliases }) },
      { additionalProperties: false, default: {} },
    ),
    logLevel: t.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }),
  },
  { additionalProperties: false },
)
export type Settings = t.Static<typeof Settings>

export class SettingsError extends Error {
  override readonly name = 'SettingsError'
}

/** `text` is the content of the file, or nothing; `where` names it in the error. */
export function parseSettings(text: string | undefined, where = 'config.json'): Settings {
  const value: unknown = text === undefined ? {} : parseJson(text, where)
  const check = new Ajv({ allErrors: true, useDefaults: true }).compile<Settings>(Settings)
  if (check(value)) return value
  const problems = (check.errors ?? []).map(
    (error) => `${error.instancePath.slice(1).replaceAll('/', '.') || 'it'} ${error.message}`,
  )
  throw new SettingsError(`${where} cannot be used: ${problems.join('; ')}`)
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new SettingsError(`${where} is not JSON: ${(error as Error).message}`)
  }
}
