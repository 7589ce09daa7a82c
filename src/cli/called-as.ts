// Texts of this program and of the service name commands as `svc3 …`. An error crosses the wire as text, so this is the
// one place where those commands become what this caller would type.
import { spelledAs } from '../rules/names.ts'
import { chooseNamespace, findConnection } from './connect/connection.ts'
import type { Host } from './host.ts'

/** Lets commands in the text begin with `name`. File and host names that contain "svc3" stay. */
export const withProgramName = (text: string, name: string): string =>
  spelledAs(name, text).replaceAll(/(?<![\w/.-])svc3 (?=[a-z_-])/g, () => `${name} `)

/** Returns the text with commands as this caller types them, without a namespace that is the default. */
export const asTyped = (text: string, host: Host): string =>
  withProgramName(text.includes(' -n ') ? withoutDefaultNamespace(text, host) : text, host.typedAs)

function withoutDefaultNamespace(text: string, host: Host): string {
  try {
    const defaultNamespace = chooseNamespace(host, undefined, findConnection(host))
    return text.replaceAll(/ -n ([\w-]+)/g, (option, namespace) => (namespace === defaultNamespace ? '' : option))
  } catch {
    return text
  }
}
