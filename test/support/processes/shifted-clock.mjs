// Loaded before a program: shifts its clock by the milliseconds in the file CLOCK_SHIFT_FILE, whenever it changes. A file
// beside it has the shift in force.
import fs from 'node:fs'

const RealDate = globalThis.Date
const file = process.env.CLOCK_SHIFT_FILE ?? ''
let shiftMs = 0
fs.watchFile(file, { interval: 50, persistent: false }, read)
read()

function read() {
  shiftMs = fs.existsSync(file) ? Number(fs.readFileSync(file, 'utf8')) : 0
  fs.writeFileSync(`${file}.seen`, String(shiftMs))
}

globalThis.Date = class extends RealDate {
  constructor(...words) {
    if (words.length === 0) super(RealDate.now() + shiftMs)
    else super(...words)
  }
  static now() {
    return RealDate.now() + shiftMs
  }
}
