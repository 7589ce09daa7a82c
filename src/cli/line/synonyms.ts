// Synonyms of commands. They work in every group that has one of the commands. The reference does not list them, and
// completion offers them only if nothing else fits.
import type { CommandTable } from '../command.ts'

/** Each word stands for the first of its commands that the group has. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  ls: ['list', 'list-subjects', 'view'],
  get: ['list', 'list-subjects', 'view'],
  show: ['info', 'view', 'list'],
  describe: ['show', 'info', 'view', 'list'],
  inspect: ['show', 'info', 'view', 'list'],
  info: ['show', 'view', 'list'],
  rm: ['delete', 'remove', 'remove-subject'],
  delete: ['remove', 'remove-subject'],
  remove: ['delete', 'remove-subject'],
  create: ['deploy', 'add', 'add-subject'],
  add: ['create', 'add-subject'],
}

/** Words with a similar meaning, which are suggested but not run. */
const suggestions: Readonly<Record<string, readonly string[]>> = {
  run: ['deploy'],
  exec: ['ssh'],
  shell: ['ssh'],
  attach: ['ssh'],
  screen: ['vnc'],
  console: ['vnc'],
  restart: ['stop'],
  reboot: ['stop'],
  pause: ['suspend'],
  unpause: ['resume'],
  reset: ['revert'],
  kill: ['delete'],
  destroy: ['delete'],
  purge: ['delete'],
  list: ['show'],
  ls: ['show'],
  get: ['show'],
  delete: ['set'],
  remove: ['set'],
  rm: ['set'],
  status: ['show', 'list'],
  ps: ['list'],
  top: ['list'],
  clone: ['copy'],
  cp: ['copy'],
  import: ['upload'],
  export: ['download'],
  snapshot: ['save'],
  join: ['join-token'],
  use: ['use-context'],
  signin: ['login'],
  signout: ['logout'],
}

const firstOf = (words: readonly string[] = [], table: CommandTable): string | undefined =>
  words.find((word) => Object.hasOwn(table, word))

const row = (of: Readonly<Record<string, readonly string[]>>, word: string): readonly string[] | undefined =>
  Object.hasOwn(of, word) ? of[word] : undefined

export const synonymOf = (word: string, table: CommandTable): string | undefined => firstOf(row(synonyms, word), table)

export const suggestedCommand = (word: string, table: CommandTable): string | undefined =>
  firstOf(row(suggestions, word), table)

/** All synonyms that apply in this table, with their commands. */
export const synonymsIn = (table: CommandTable): readonly (readonly [string, string])[] =>
  Object.keys(synonyms).flatMap((word) => {
    const command = Object.hasOwn(table, word) ? undefined : synonymOf(word, table)
    return command === undefined ? [] : [[word, command] as const]
  })
