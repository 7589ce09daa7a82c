// The table of commands is complete: each entry has texts, and its examples are valid.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { exampleWords } from '../../../test/support/tools/example-words.ts'
import type { Command, CommandTable, Leaf } from '../command.ts'
import { commands } from '../commands/index.ts'
import { tour } from '../line/help.ts'
import { isLeaf, locate } from '../line/locate.ts'
import { parse } from '../line/parse.ts'

function leaves(table: CommandTable, path: readonly string[] = []): { words: string[]; leaf: Leaf }[] {
  return Object.entries(table).flatMap(([name, entry]) => [
    ...(isLeaf(entry) ? [{ words: [...path, name], leaf: entry }] : []),
    ...('commands' in entry ? leaves(entry.commands, [...path, name]) : []),
  ])
}
const all = leaves(commands)
const folders = ['../commands', '../../operator'].map((folder) => path.join(import.meta.dirname, folder))

/** The words after the program's name, as a shell would pass them. */
function wordsOf(line: string): string[] {
  const found = exampleWords(line)
  assert.ok(found, `"${line}" does not call svc3`)
  return found.words
}

describe('the table of commands', () => {
  it('the table of commands has every file that defines a command, and every command once', async () => {
    const files = folders.flatMap((folder) =>
      fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => path.join(folder, file)),
    )
    const defined = files.filter(
      (file) => file.endsWith('.ts') && /^export const command =/m.test(fs.readFileSync(file, 'utf8')),
    )
    const loaded = new Set((await Promise.all(all.map(({ leaf }) => leaf.load()))).map(({ command }) => command))
    assert.equal(loaded.size, new Set(all.map(({ leaf }) => leaf)).size)
    for (const file of defined) assert.ok(loaded.has(((await import(file)) as { command: Command }).command), file)
  })

  it('the table of commands has one meaning for each word', () => {
    const tables = [
      commands,
      ...Object.values(commands).flatMap((entry) => ('commands' in entry ? [entry.commands] : [])),
    ]
    for (const table of tables) {
      const words = Object.entries(table).flatMap(([name, { aliases = [], hiddenAliases = [] }]) => [
        ...[name, ...aliases, ...hiddenAliases],
      ])
      assert.equal(new Set(words).size, words.length)
    }
  })

  it('every line of the tour in the first help parses', async () => {
    assert.ok(tour.length >= 6)
    for (const { line } of tour) {
      const { found, rest } = locate(wordsOf(line), commands)
      assert.ok(isLeaf(found))
      const { command } = await found.load()
      assert.doesNotThrow(() => parse(command, rest), line)
    }
  })

  it('former names of commands work, and no help shows them', async () => {
    const { stdout } = await run(['server', '--help'])
    for (const [former, now] of [
      ['rotate-key', 'rotate-master-key'],
      ['rotate-keys', 'rotate-signing-keys'],
    ] as const) {
      assert.equal(locate(['server', former], commands).found, locate(['server', now], commands).found)
      assert.doesNotMatch(stdout, new RegExp(`\\b${former}\\b`))
    }
  })

  for (const { words, leaf } of all) {
    it(`${words.join(' ')}: help renders, fits, and its examples parse`, async () => {
      const { exitCode, stdout, stderr } = await run([...words, '--help'])
      assert.deepEqual([exitCode, stderr], [0, ''])
      assert.ok(stdout.startsWith(`${leaf.summary}\n\nUsage: svc3 ${words.join(' ')}`))
      for (const line of stdout.split('\n')) assert.ok(line.length <= 130 && line === line.trimEnd(), line)
      const { command } = await leaf.load()
      const shorts = Object.values(command.options).flatMap((option) => option.short ?? [])
      assert.equal(new Set([...shorts, 'h']).size, shorts.length + 1)
      for (const { line } of command.examples) {
        assert.ok(stdout.includes(line))
        const { found, rest } = locate(wordsOf(line), commands)
        assert.equal(found, leaf)
        assert.doesNotThrow(() => parse(command, rest))
      }
    })
  }
})
