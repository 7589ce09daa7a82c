// Which packages and sources are used, given the output and files of apt.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readDependencies, withLibraries } from './packages.ts'
import { chooseSources } from './sources.ts'

describe('dependencies', () => {
  const graph = readDependencies(`sudo
  Depends: libaudit1
  Depends: libpam0g
 |Depends: libpam-runtime
  Depends: <awk>
    mawk
  PreDepends: init-system-helpers
libpam0g
  Depends: libc6
  Depends: debconf
<awk>
libc6
  Depends: libgcc-s1
libgcc-s1
  Depends: libc6
debconf
  Depends: perl-base
linux-image-amd64
  Depends: linux-image-6.1.0-54-amd64
linux-image-6.1.0-54-amd64
  Depends: kmod
  Depends: linux-base
`)

  it('dependencies are followed through libraries only', () =>
    assert.deepEqual(withLibraries(['sudo'], graph).sort(), [
      'libaudit1',
      'libc6',
      'libgcc-s1',
      'libpam-runtime',
      'libpam0g',
      'sudo',
    ]))

  it('dependencies lead to the kernel of the day, which comes alone', () => {
    assert.deepEqual(withLibraries(['linux-image-amd64'], graph), ['linux-image-6.1.0-54-amd64'])
    assert.throws(() => withLibraries(['linux-image-arm64'], graph), /have no linux-image-arm64/)
  })

  it('dependencies are read without virtual packages', () => assert.equal(graph.has('<awk>'), false))
})

describe('chooseSources', () => {
  const debian =
    'Types: deb deb-src\nURIs: http://deb.example.org/debian\nSuites: bookworm\nComponents: main\nArchitectures: amd64\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg'
  const other = 'Types: deb\nURIs: https://example.com/node\nSuites: any\nComponents: main'

  it("chooseSources takes Debian's, for any architecture, and no source packages", () => {
    const { stanzas, list } = chooseSources({
      list: '# deb http://deb.example.org/debian old main\ndeb [arch=amd64 signed-by=/k] http://mirror.example/debian/ bookworm main\ndeb https://download.example/linux/debian bookworm stable\ndeb-src http://deb.example.org/debian bookworm main\n',
      stanzas: `${debian}\n\n${other}\n\n${debian}\nEnabled: no\n`,
    })
    assert.equal(list, 'deb [signed-by=/k] http://mirror.example/debian/ bookworm main\n')
    assert.equal(
      stanzas,
      'Types: deb\nURIs: http://deb.example.org/debian\nSuites: bookworm\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n',
    )
  })

  it('chooseSources takes all where none is known to be Debian’s: a mirror may have any name', () =>
    assert.equal(chooseSources({ list: '', stanzas: other }).stanzas, `${other}\n`))
})
