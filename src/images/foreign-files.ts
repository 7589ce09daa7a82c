// Recognises files that are no raw disks, by their beginning, last sector and size, with advice for users. Raw disks
// have no signature, so anything else counts as one.
import { sectorBytes } from './format/format.ts'

export const headBytes = 4_096

interface Mark {
  readonly what: string
  readonly advice: string
  readonly bytes: string
  readonly at?: number
  /** The offset is in the last sector. */
  readonly isLast?: boolean
}

const convert = 'convert it with qemu-img convert -O qcow2, then upload the result'
const unpack = 'unpack it, then upload the disk inside'
const wrong = 'check that it is the right file'

/** Latin 1, so that one character is one byte. */
const marks: readonly Mark[] = [
  { what: 'a VMDK disk', advice: convert, bytes: 'KDMV' },
  { what: 'a VMDK disk', advice: convert, bytes: 'COWD' },
  { what: 'the description of a VMDK disk', advice: convert, bytes: '# Disk DescriptorFile' },
  { what: 'a VHDX disk', advice: convert, bytes: 'vhdxfile' },
  { what: 'a VHD disk', advice: convert, bytes: 'conectix' },
  { what: 'a VHD disk', advice: convert, bytes: 'conectix', isLast: true },
  { what: 'a VDI disk', advice: convert, bytes: '\x7f\x10\xda\xbe', at: 64 },
  { what: 'a QED disk', advice: convert, bytes: 'QED\0' },
  { what: 'a Parallels disk', advice: convert, bytes: 'WithoutFreeSpace' },
  { what: 'a Parallels disk', advice: convert, bytes: 'WithouFreSpacExt' },
  {
    what: 'a macOS disk image (DMG)',
    advice: 'convert it with hdiutil convert -format UDTO',
    bytes: 'koly',
    isLast: true,
  },
  { what: 'a macOS sparse bundle or image', advice: 'convert it with hdiutil convert -format UDTO', bytes: 'sprs' },
  { what: 'an Android sparse image', advice: 'convert it with simg2img', bytes: ':\xff&\xed' },
  { what: 'a ZIP archive', advice: unpack, bytes: 'PK\x03\x04' },
  { what: 'a ZIP archive', advice: unpack, bytes: 'PK\x05\x06' },
  { what: 'a 7z archive', advice: unpack, bytes: '7z\xbc\xaf\x27\x1c' },
  { what: 'a RAR archive', advice: unpack, bytes: 'Rar!\x1a\x07' },
  { what: 'a tar archive', advice: unpack, bytes: 'ustar', at: 257 },
  { what: 'a xar archive', advice: unpack, bytes: 'xar!' },
  { what: 'compressed by bzip2', advice: 'unpack it, or compress it with xz, gzip or zstd', bytes: '1AY&SY', at: 4 },
  { what: 'compressed by LZ4', advice: 'unpack it, or compress it with xz, gzip or zstd', bytes: '\x04"M\x18' },
  { what: 'a PDF document', advice: wrong, bytes: '%PDF-' },
  { what: 'a PNG picture', advice: wrong, bytes: '\x89PNG\r\n\x1a\n' },
  { what: 'a program', advice: wrong, bytes: '\x7fELF' },
]

const hasMark = (head: Buffer, lastSector: Buffer, { bytes, at = 0, isLast = false }: Mark): boolean =>
  (isLast ? lastSector : head).toString('latin1', at, at + bytes.length) === bytes

/** `head`: the first `headBytes` of the file. Returns undefined if the file may be a disk. */
export function whyNoDisk(head: Buffer, lastSector: Buffer, fileBytes: number): string | undefined {
  const mark = marks.find((each) => hasMark(head, lastSector, each))
  if (mark) return `it is ${mark.what}: ${mark.advice}`
  if (isText(head)) return `it is text or a web page: ${wrong}`
  if (fileBytes % sectorBytes !== 0)
    return `it has ${fileBytes} bytes, not a multiple of ${sectorBytes}: check that it is a complete disk`
  return undefined
}

/** A disk begins with a boot sector, a table or zeros, which are not text. */
function isText(head: Buffer): boolean {
  // The last character may be incomplete.
  for (let cut = 0; cut < 4 && cut < head.length; cut += 1) {
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(head.subarray(0, head.length - cut))
      return !/[^\P{Cc}\t\r\n\f]/u.test(text)
    } catch {
      // Not UTF-8, or cut elsewhere.
    }
  }
  return false
}
