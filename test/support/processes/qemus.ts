// QEMU processes that work in a folder, from /proc.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'

/** Their pids. */
export function qemusIn(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(Boolean)
    .filter((pid) => {
      try {
        const program = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? ''
        return program.startsWith('qemu-system') && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
      } catch {
        return false
      }
    })
}

/** Whether this process has written to the file: its content may be that of an earlier one. */
export function hasWritten(pid: number, name: string): boolean {
  const isIt = (fd: string): boolean => path.basename(readlinkSync(`/proc/${pid}/fd/${fd}`)) === name
  const fd = readdirSync(`/proc/${pid}/fd`).find(isIt)
  return fd !== undefined && !/^pos:\s+0$/m.test(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))
}
