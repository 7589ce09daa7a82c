// What can be tested of the command line on Windows without Windows: its script, its folders, and what it refuses.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startFakeService } from '../../test/support/stand-ins/api.ts'
import { userFolder } from './connect/folders.ts'

const textOf = (name: string): string => fs.readFileSync(`${import.meta.dirname}/../../${name}`, 'utf8')
/** As cmd expands `%~dp0`, which ends with a backslash. */
const inBin = (path: string): string => path.replace('%~dp0', 'bin/').replaceAll('\\', '/')

describe('svc3.cmd', () => {
  const scripts = { 'bin/svc3.cmd': 'node "%~dp0start.mjs" %*', 'bin/orka3.cmd': 'call "%~dp0svc3.cmd" %*' }
  for (const [name, line] of Object.entries(scripts))
    it(`${name} passes all arguments to a file that is there, and returns its exit code`, () => {
      const text = textOf(name)
      assert.equal(text.split('\n').length, text.split('\r\n').length, 'cmd needs CRLF to find labels')
      const lines = text.split('\r\n')
      assert.equal(lines[lines.indexOf(line) + 1], 'exit /b %errorlevel%')
      assert.ok(fs.existsSync(inBin(/"(.*)"/.exec(line)?.[1] ?? '')))
      for (const [, label = ''] of text.matchAll(/goto (\w+)/g)) assert.ok(lines.includes(`:${label}`), label)
      // The name of the program is that of the script which was called.
      assert.ok(text.includes('set "SVC3_CALLED_AS=%~n0"'))
    })

  it('the scripts start the same program as the POSIX one, and are in the package', () => {
    assert.ok(textOf('bin/svc3').includes('exec node $lean "$root/bin/start.mjs" "$@"'))
    assert.ok(textOf('bin/svc3').includes('dist/svc3.cjs') && textOf('bin/svc3.cmd').includes('dist\\svc3.cjs'))
    assert.ok(JSON.parse(textOf('package.json')).files.includes('bin'))
  })
})

describe('Windows', () => {
  const windows = { OS: 'Windows_NT', USERPROFILE: 'C:\\Users\\ana' }

  it('files are in the folder of the user, which HOME and XDG_CONFIG_HOME override', () => {
    assert.equal(userFolder({ env: windows }, 'CONFIG'), 'C:\\Users\\ana/.config/svc3')
    assert.equal(userFolder({ env: windows }, 'CACHE'), 'C:\\Users\\ana/.cache/svc3')
    assert.equal(userFolder({ env: { ...windows, XDG_CONFIG_HOME: 'D:\\c' } }, 'CONFIG'), 'D:\\c/svc3')
    assert.equal(userFolder({ env: { ...windows, HOME: '/home/ana' } }, 'CONFIG'), '/home/ana/.config/svc3')
    assert.equal(userFolder({ env: {} }, 'CONFIG'), undefined)
  })

  it('vm ssh is refused before any request, and says what to do', async () => {
    await using service = await startFakeService()
    const env = { ...windows, SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
    const { exitCode, stderr } = await run(['vm', 'ssh', 'demo'], { env })
    assert.deepEqual([exitCode, service.requests.length], [1, 0])
    assert.match(stderr, /^svc3: svc3 vm ssh does not run on Windows\nsvc3: Run it in WSL\n$/)
  })
})
