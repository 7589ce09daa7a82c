// The smallest disc that a PC boots: El Torito without emulation, and a boot sector that writes to the serial console.
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
  code(text).copy(at(bootSector))
  return disc
}

/** 16 bit, wherever it is loaded. */
function code(text: string): Buffer {
  const program = Buffer.from([
    0xe8, 0x00, 0x00, //       call next
    0x5e, //             next: pop si
    0x83, 0xc6, 0x20, //       add si, text - next
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
    0xf4, //             done: hlt
    0xeb, 0xfd, //             jmp done
  ]) // biome-ignore format: as it is assembled
  return Buffer.concat([program, Buffer.from(`${text}\r\n\0`, 'latin1')])
}
