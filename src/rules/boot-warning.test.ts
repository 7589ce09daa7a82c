// Boot warnings by firmware and guest.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { bootWarning } from './boot-warning.ts'

const nothing = { efi: false, bios: false, apple: false }
const cases: readonly (readonly [Parameters<typeof bootWarning>[0], Partial<typeof nothing>, RegExp | undefined])[] = [
  [{ architecture: 'arm64' }, { efi: true }, undefined],
  [
    { architecture: 'arm64' },
    { bios: true },
    /^No EFI system partition found; this disk will not boot on arm64 nodes$/,
  ],
  [{ architecture: 'arm64', os: 'macos' }, { apple: true }, undefined],
  [{ architecture: 'arm64' }, { apple: true }, undefined],
  [{ architecture: 'arm64', os: 'linux' }, { apple: true }, /No EFI system partition/],
  [{ architecture: 'arm64', os: 'macos' }, { efi: true }, /No APFS container/],
  [{ architecture: 'amd64' }, { bios: true }, undefined],
  [{ architecture: 'amd64' }, { efi: true }, /No BIOS boot code found.*Upload it with firmware uefi$/],
  [{ architecture: 'amd64' }, {}, /will not boot$/],
  [{ architecture: 'amd64', firmware: 'uefi' }, { efi: true }, undefined],
  [{ architecture: 'amd64', firmware: 'uefi' }, { bios: true }, /UEFI firmware\. Upload it with firmware bios$/],
  [{ architecture: 'amd64', os: 'macos' }, { bios: true }, /will not boot with UEFI firmware$/],
]

for (const [vm, found, expected] of cases)
  it(`a disk with ${Object.keys(found).join() || 'nothing'} for ${Object.values(vm).join(' ')} is ${expected ? 'warned of' : 'fine'}`, () => {
    const warning = bootWarning(vm, { ...nothing, ...found })
    if (expected) assert.match(warning ?? '', expected)
    else assert.equal(warning, undefined)
  })
