// The smallest disc and the smallest disk that a PC boots: one writes to the serial console, the other also reacts to the
// power button. The disc is El Torito without emulation.
const sectorBytes = 2_048
const [bootRecord, end, catalog, bootSector, sectors] = [17, 18, 19, 20, 24]

export function bootDisc(text: string): Buffer {
  const disc = Buffer.alloc(sectors * sectorBytes)
  const at = (sector: number): Buffer => disc.subarray(sector * sectorBytes, (sector + 1) * sectorBytes)
  at(16).write('\x01CD001\x01', 'latin1')
  at(bootRecord).write('\x00CD001\x01EL TORITO SPECIFICATION', 'latin1')
  at(bootRecord).writeUInt32LE(catalog, 0x47)
  at(end).write('\xffCD001\x01', 'latin1')
  // The validation entry adds up to zero in words; the default entry is bootable, 4 sectors of 512 bytes.
  at(catalog).writeUInt8(1, 0)
  at(catalog).writeUInt16LE(0x10000 - 0x0001 - 0xaa55, 28)
  at(catalog).writeUInt16LE(0xaa55, 30)
  at(catalog).writeUInt8(0x88, 32)
  at(catalog).writeUInt16LE(4, 38)
  at(catalog).writeUInt32LE(bootSector, 40)
  bootCode(text).copy(at(bootSector))
  return disc
}

/** Boots at once, writes `text` to the serial console, and powers off by its power button. */
export function powerButtonDisk(text: string): Buffer {
  const disk = Buffer.alloc(2 ** 20)
  const listen = Buffer.from([
    0xba, 0x02, 0x06, //       mov dx, 0x602, which events of q35's power management are told
    0xb8, 0x00, 0x01, //       mov ax, 0x100, the power button
    0xef, //                   out dx, ax
    0xfb, //                   sti
  ]) // biome-ignore format: one instruction a line
  const goDown = Buffer.from([
    0xf4, //             next: hlt, until the clock ticks
    0xba, 0x00, 0x06, //       mov dx, 0x600, the events that were
    0xed, //                   in ax, dx
    0xf6, 0xc4, 0x01, //       test ah, 1
    0x74, 0xf6, //             jz next
    0xba, 0x04, 0x06, //       mov dx, 0x604, what it is to do
    0xb8, 0x00, 0x20, //       mov ax, 0x2000, to sleep as deep as can be
    0xef, //                   out dx, ax
    0xeb, 0xed, //             jmp next
  ]) // biome-ignore format: one instruction a line
  bootCode(text, listen, goDown).copy(disk)
  disk.writeUInt16LE(0xaa55, 510)
  return disk
}

const halt = Buffer.from([
  0xf4, //             done: hlt
  0xeb, 0xfd, //             jmp done
]) // biome-ignore format: one instruction a line

/** 16-bit code, wherever it is loaded: `first`, then the text to the serial console, then `last`, which must not return. */
function bootCode(text: string, first: Buffer = Buffer.alloc(0), last: Buffer = halt): Buffer {
  const program = Buffer.from([
    0xe8, 0x00, 0x00, //       call next
    0x5e, //             next: pop si
    0x83, 0xc6, 29 + last.length, // add si, text - next
    0xba, 0xf8, 0x03, //       mov dx, 0x3f8, the first serial port
    0x2e, 0xac, //       loop: cs lodsb
    0x84, 0xc0, //             test al, al
    0x74, 0x10, //             jz done
    0x50, //                   push ax
    0x83, 0xc2, 0x05, //       add dx, 5
    0xec, //             wait: in al, dx
    0xa8, 0x20, //             test al, 0x20, room for a character
    0x74, 0xfb, //             jz wait
    0x83, 0xea, 0x05, //       sub dx, 5
    0x58, //                   pop ax
    0xee, //                   out dx, al
    0xeb, 0xea, //             jmp loop
  ]) // biome-ignore format: one instruction a line
  return Buffer.concat([first, program, last, Buffer.from(`${text}\r\n\0`, 'latin1')])
}
