// Finds the holes of a raw file. Node has no lseek, so qemu-img does it, or Perl, which every Mac has. The format is passed
// explicitly, because a guest controls the content and could make QEMU detect another format.
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { childEnvironment } from '../../platform/exec.ts'
import { addExtent } from '../format/extents.ts'
import type { Extent } from '../format/format.ts'
import { blockBytes } from '../format/format.ts'
import { wholeBlocks } from '../format/manifest.ts'

/** Returns the ranges with data, in whole blocks. If no program finds them, that is the whole file: correct, but slower. */
export async function dataAreas(file: string, signal?: AbortSignal, tools = mappers): Promise<readonly Extent[]> {
  const { size, blocks } = await fs.stat(file)
  if (size === 0 || blocks === 0) return []
  const everything: Extent[] = [[0, wholeBlocks(size)]]
  if (blocks * 512 >= size) return everything
  for (const tool of tools) {
    try {
      return await mappedAreas(tool(path.resolve(file)), size, signal)
    } catch {
      signal?.throwIfAborted()
    }
  }
  return everything
}

type Mapper = (file: string) => readonly [program: string, ...words: string[]]

export const qemuMapper: Mapper = (file) => {
  const node = `driver=raw,file.driver=file,file.locking=off,file.filename=${file.replaceAll(',', ',,')}`
  return ['qemu-img', 'map', '-U', '--output=json', '--image-opts', node]
}

/** Numbers of lseek. */
const [seekData, seekHole] = process.platform === 'darwin' ? [4, 3] : [3, 4]

/** Prints lines as qemu-img does. */
export const perlMapper: Mapper = (file) => [
  '/usr/bin/perl',
  '-e',
  `open(my $f, '<', $ARGV[0]) or die; my ($at, $size) = (0, -s $f);
sub area { printf qq({"start": %d, "length": %d, "data": %s}\n), $at, $_[0] - $at, $_[1]; $at = $_[0] }
while ($at < $size) {
  my $data = sysseek($f, $at, ${seekData});
  if (!defined $data) { die unless $!{ENXIO}; area($size, 'false'); last }
  area($data + 0, 'false') if $data > $at;
  my $hole = sysseek($f, $at, ${seekHole}) // die;
  area($hole + 0, 'true');
}`,
  file,
]

const mappers: readonly Mapper[] = [qemuMapper, perlMapper]

const entry = /^[ [{]*"start": (\d+), "length": (\d+),.*"data": (true|false)/

async function mappedAreas(
  [program, ...words]: ReturnType<Mapper>,
  size: number,
  signal: AbortSignal | undefined,
): Promise<readonly Extent[]> {
  const child = spawn(program, words, {
    env: childEnvironment,
    stdio: ['ignore', 'pipe', 'ignore'],
    ...(signal && { signal, killSignal: 'SIGKILL' }),
  })
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  ended.catch(() => undefined) // Awaited below; the output may fail first.
  const areas: Extent[] = []
  let mappedBytes = 0
  for await (const line of createInterface({ input: child.stdout })) {
    const [, start = '', length = '', data] = entry.exec(line) ?? []
    if (Number(start) !== mappedBytes || length === '') continue
    mappedBytes += Number(length)
    if (data === 'true') addBlocks(areas, Number(start), mappedBytes)
  }
  // qemu-img rounds the size up to sectors.
  if ((await ended) !== 0 || mappedBytes < size) throw new Error(`${program} could not map the file`)
  return areas
}

/** Adds the blocks of a range. The first one may already be in the list. */
function addBlocks(areas: Extent[], start: number, end: number): void {
  const last = areas.at(-1)
  const from = Math.max(Math.floor(start / blockBytes) * blockBytes, last ? last[0] + last[1] : 0)
  if (wholeBlocks(end) > from) addExtent(areas, from, wholeBlocks(end) - from)
}
