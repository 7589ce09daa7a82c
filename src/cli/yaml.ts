// The one file of the command line that knows the yaml package; loaded only for `-o yaml`.
import { stringify } from 'yaml'

export const toYaml = (value: unknown): string => stringify(value, { lineWidth: 0 })
