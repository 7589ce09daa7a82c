// The table of commands: words → what they are for and where they are. Help reads it without loading any command.
import type { Command } from '../command.ts'

export interface Leaf {
  readonly summary: string
  readonly aliases?: readonly string[]
  load(): Promise<{ readonly command: Command }>
}
export interface Group {
  readonly summary: string
  readonly aliases?: readonly string[]
  readonly commands: CommandTable
}
export type Entry = Leaf | Group
export type CommandTable = { readonly [word: string]: Entry }

export const commands: CommandTable = {
  registrycredential: {
    summary: 'Credentials for OCI registries, one set per registry and namespace',
    aliases: ['regcred'],
    commands: {
      list: { summary: 'List stored registry credentials', load: () => import('./registry-credentials/list.ts') },
      add: { summary: 'Store credentials for a registry', load: () => import('./registry-credentials/add.ts') },
      remove: {
        summary: 'Remove the credentials for a registry',
        load: () => import('./registry-credentials/remove.ts'),
      },
    },
  },
  namespace: {
    summary: 'Namespaces, the scope of every other resource',
    aliases: ['ns'],
    commands: {
      list: { summary: 'List the namespaces that you may use', load: () => import('./namespaces/list.ts') },
    },
  },
  user: {
    summary: 'Who you are to the service',
    commands: {
      'get-token': { summary: 'Print a valid token', load: () => import('./users/get-token.ts') },
    },
  },
  dev: { summary: 'Run the whole service on this machine, for development', load: () => import('./dev.ts') },
  server: {
    summary: 'Look after the control plane',
    commands: {
      'rotate-key': {
        summary: 'Seal all stored secrets with a new key',
        load: () => import('./server/rotate-key.ts'),
      },
    },
  },
  version: { summary: 'Show the versions of this program and of the server', load: () => import('./version.ts') },
  help: { summary: 'Show help for a command', load: () => import('./help.ts') },
}
