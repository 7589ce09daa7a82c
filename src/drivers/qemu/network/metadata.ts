// What a guest reads at http://169.254.169.254: complete HTTP responses in files that only the VM's QEMU serves, by a
// script for /bin/sh. It works without an agent, and no other VM can reach it.
import fs from 'node:fs/promises'
import path from 'node:path'
import { identityLines } from './identity.ts'

/** Relative to the VM's folder, where QEMU runs. */
export const metadataCommand = '/bin/sh metadata/answer.sh'
const folderName = 'metadata'

/**
 * Standard input and output are a connection of the guest, which is hostile. Its input is only compared with the lines of
 * `index`; at most 8 KiB are read, and at most eight connections are served at once.
 */
const script = `# Answers one HTTP request of this VM's guest. Made at every start of the VM.
LC_ALL=C PATH=/usr/bin:/bin
export LC_ALL PATH
exec 2>/dev/null
cd "\${0%/*}" || exit 1
slot=
for n in 1 2 3 4 5 6 7 8; do
  if mkdir "slot-$n"; then slot=slot-$n; break; fi
done
[ -n "$slot" ] || { cat busy; exit; }
trap 'rmdir "$slot"' EXIT
trap 'exit 1' HUP INT PIPE TERM
nl='
'
cr=$(printf '\\r')
request=
until [ \${#request} -ge 8192 ]; do
  chunk=$(dd bs=1024 count=1; printf x)
  chunk=\${chunk%x}
  [ -n "$chunk" ] || break
  request=$request$chunk
  case $request in *"$nl$nl"* | *"$nl$cr$nl"*) break ;; esac
done
line=\${request%%"$nl"*}
line=\${line%"$cr"}
case $line in
  'GET '*' HTTP/1.'[01]) ;;
  *) cat bad; exit ;;
esac
wanted=\${line#GET }
wanted=\${wanted% HTTP/1.?}
wanted=\${wanted%%\\?*}
while read -r file served; do
  [ "x$wanted" = "x$served" ] || continue
  cat "$file"
  [ "$file" != identity ] || date +'time %s %N'
  exit
done < index
cat missing
`

interface Metadata {
  readonly uid: string
  readonly name: string
  readonly metadata: Readonly<Record<string, string>>
  readonly facts?: Readonly<Record<string, string>>
  /** Base64. */
  readonly userdata?: string
}

const keyForm = /^[A-Za-z0-9_. -]{1,128}$/

export async function writeMetadata(folder: string, vm: Metadata): Promise<void> {
  const { userdata } = vm
  const values = { ...vm.metadata, ...vm.facts }
  const target = path.join(folder, folderName)
  await removeMetadata(folder)
  await fs.mkdir(target, { mode: 0o700 })
  const keys = Object.keys(values)
  const odd = keys.find((key) => !keyForm.test(key))
  if (odd !== undefined)
    throw new Error(
      `metadata key ${JSON.stringify(odd.slice(0, 150))} cannot be served: use 1 to 128 letters, digits, spaces, '_', '.', '-'`,
    )
  const items = keys.map((key) => ({ key, value: values[key] }))
  const answers: { readonly file: string; readonly served?: readonly string[]; readonly bytes: Buffer }[] = [
    { file: 'list', served: ['/metadata', '/metadata/'], bytes: json('200 OK', { items }) },
    ...keys.map((key, index) => ({
      file: `value-${index}`,
      served: [`/metadata/${encodeURIComponent(key)}`],
      bytes: json('200 OK', { value: values[key] }),
    })),
    // The connection's end is the end of the response, because the script adds the time.
    { file: 'identity', served: ['/svc3/identity'], bytes: Buffer.from(`${openHead}${identityLines(vm)}`) },
    { file: 'missing', bytes: json('404 Not Found', { message: 'not found' }) },
    { file: 'bad', bytes: json('400 Bad Request', { message: 'not a GET request of HTTP/1.0 or 1.1' }) },
    { file: 'busy', bytes: json('503 Service Unavailable', { message: 'too many connections at once' }) },
  ]
  if (userdata !== undefined)
    answers.push({
      file: 'userdata',
      served: ['/userdata'],
      bytes: http('200 OK', 'application/octet-stream', Buffer.from(userdata, 'base64')),
    })
  const index = answers.flatMap(({ file, served = [] }) => served.map((path) => `${file} ${path}\n`))
  const files = [
    ...answers.map(({ file, bytes }) => ({ file, bytes })),
    { file: 'index', bytes: Buffer.from(index.join('')) },
    { file: 'answer.sh', bytes: Buffer.from(script) },
  ]
  await Promise.all(files.map(({ file, bytes }) => fs.writeFile(path.join(target, file), bytes, { mode: 0o600 })))
}

/** Secrets are removed while no guest can read them. */
export const removeMetadata = (folder: string): Promise<void> =>
  fs.rm(path.join(folder, folderName), { recursive: true, force: true })

const openHead = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n'

const json = (status: string, body: unknown): Buffer =>
  http(status, 'application/json', Buffer.from(`${JSON.stringify(body)}\n`))

const http = (status: string, type: string, body: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
    ),
    body,
  ])
