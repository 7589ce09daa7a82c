// The version of this program, from package.json at build time.
import about from '../../package.json' with { type: 'json' }

export const version: string = about.version
