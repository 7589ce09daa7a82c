// The upload dialog. An interrupted upload resumes automatically, and after a reload once the same file is chosen
// again.
import { type DragEvent, useEffect, useRef, useState } from 'react'
import { ApiError } from '../../../src/api/errors.ts'
import { abandonUpload, beginUpload, continueUpload, finishUpload } from '../../../src/api/images/uploads.ts'
import { errorFromAnswer } from '../../../src/client/answer.ts'
import { ConnectionError } from '../../../src/client/transport.ts'
import { isTransient } from '../../../src/platform/retry.ts'
import { timeLeft } from '../../../src/rules/durations.ts'
import { sizeText } from '../../../src/rules/sizes.ts'
import { handleUnauthorized } from '../../api/calls.ts'
import { client } from '../../api/client.ts'
import { sessionHeader } from '../../api/page-transport.ts'
import { type UploadProgress, upload } from '../../api/upload.ts'
import { serviceUrl } from '../../api/urls.ts'
import { pathOf } from '../../show-as/requests.ts'
import { architectures } from '../../ui/architectures.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField, useForm } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { ErrorNote } from '../../ui/page.tsx'
import { ShowAs } from '../../ui/show-as.tsx'
import { rateText } from '../../ui/sizes.ts'
import { Bar } from '../../ui/state.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { FirmwareField } from './create.tsx'

const dropHints = { image: 'Raw or qcow2 disk, optionally compressed with gzip, zstd or xz', iso: 'Any file' }

const uploadTitles = { image: 'Upload image', iso: 'Upload ISO' }

interface Props {
  readonly kind: 'image' | 'iso'
  readonly namespace: string
  readonly onClose: () => void
}

const nameOf = (kind: Props['kind'], file: File): string =>
  kind === 'iso' ? file.name : file.name.replace(/(\.(qcow2|img|raw|gz|zst|xz)){1,3}$/i, '')

export const uploadItem = (kind: Props['kind'], namespace: string): MenuItem => ({
  label: 'Upload',
  dialog: (onClose) => <UploadDialog kind={kind} namespace={namespace} onClose={onClose} />,
})

function UploadDialog({ kind, namespace, onClose }: Props) {
  const [file, setFile] = useState<File>()
  const { values, change, field } = useForm({ name: '', type: 'amd64', firmware: '', description: '' })
  const { name, type, firmware, description } = values
  const take = (chosen: File): void => {
    setFile(chosen)
    change({ name: nameOf(kind, chosen) })
  }
  const body = {
    kind,
    name,
    size: file?.size ?? 0,
    key: file ? `${file.name} ${file.size} ${file.lastModified}` : 'File',
    ...(description && { description }),
    ...(kind === 'image' && { type: type === 'arm64' ? ('arm64' as const) : ('amd64' as const) }),
    ...(firmware !== '' && { firmware: firmware === 'uefi' ? ('uefi' as const) : ('bios' as const) }),
  }
  const sending = useSending(namespace, file, body, () => {
    showToast(`${name} uploaded`)
    onClose()
  })
  const { progress, error, isRunning, start, pause, abandon } = sending
  const missing = file === undefined ? 'File' : name === '' ? 'Name' : undefined
  const close = (): void => {
    abandon()
    onClose()
  }
  return (
    <Dialog title={uploadTitles[kind]} onClose={isRunning ? undefined : onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (file && name !== '' && !isRunning) start()
        }}
      >
        <Drop kind={kind} file={file} onFile={take} isLocked={isRunning} />
        <div className="fields">
          <TextField label="Name" {...field('name')} readOnly={isRunning} />
          {kind === 'image' && (
            <>
              <SelectField label="Type" {...field('type')} labels={architectures} />
              <FirmwareField {...field('firmware')} />
            </>
          )}
          <TextField label="Description" {...field('description')} />
        </div>
        {progress && file && <ProgressView progress={progress} file={file} isRunning={isRunning} />}
        <ErrorNote error={error} />
        <ShowAs operation={beginUpload} input={{ params: { namespace }, body }} />
        <div className="dialog-foot">
          <Button onClick={close}>Cancel</Button>
          {isRunning && progress?.phase !== 'finishing' && <Button onClick={pause}>Pause</Button>}
          <Button type="submit" kind="primary" isBusy={isRunning} reason={missing && `${missing} is required`}>
            {progress && !isRunning ? 'Resume' : 'Upload'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function ProgressView({ progress, file, isRunning }: { progress: UploadProgress; file: File; isRunning: boolean }) {
  const { phase, bytes, resumedAt, bytesPerSecond } = progress
  const rate =
    bytesPerSecond === undefined || !isRunning
      ? ''
      : `${rateText(bytesPerSecond)}, ${timeLeft((file.size - bytes) / bytesPerSecond)} left`
  return (
    <div className="stack-tight" role="status">
      <div className="spread small tabular">
        <span>{`${sizeText(bytes)} of ${sizeText(file.size)}`}</span>
        <span className="muted">
          {phase === 'sending'
            ? rate
            : phase === 'waiting'
              ? 'Connection lost. The upload resumes automatically…'
              : 'Upload complete. Processing…'}
        </span>
      </div>
      <Bar label={file.name} value={bytes} of={file.size} />
      {resumedAt > 0 && <span className="small muted">{`Resumed: ${sizeText(resumedAt)} already uploaded`}</span>}
    </div>
  )
}

interface DropProps {
  readonly kind: 'image' | 'iso'
  readonly file: File | undefined
  readonly onFile: (file: File) => void
  readonly isLocked: boolean
}

function Drop({ kind, file, onFile, isLocked }: DropProps) {
  const [isOver, setOver] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const drop = (event: DragEvent): void => {
    event.preventDefault()
    setOver(false)
    const dropped = event.dataTransfer.files[0]
    if (dropped && !isLocked) onFile(dropped)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keyboard users have the button inside
    <div
      className="drop"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <span>{file ? `${file.name}, ${sizeText(file.size)}` : 'Drop a file here'}</span>
      <span className="small">{dropHints[kind]}</span>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="File"
        onChange={(event) => event.target.files?.[0] && onFile(event.target.files[0])}
      />
      <Button reason={isLocked ? 'Upload in progress' : undefined} onClick={() => input.current?.click()}>
        Choose file
      </Button>
    </div>
  )
}

type Begin = Parameters<typeof client.call<typeof beginUpload>>[1]['body']

/** The state of one upload: start, pause, resume, abandon. */
function useSending(namespace: string, file: File | undefined, body: Begin, onDone: () => void) {
  const [progress, setProgress] = useState<UploadProgress>()
  const [error, setError] = useState<unknown>()
  const [isRunning, setRunning] = useState(false)
  const stop = useRef<AbortController>(undefined)
  const id = useRef<string>(undefined)
  useEffect(() => () => stop.current?.abort(), [])

  const start = (): void => {
    if (!file) return
    const controller = new AbortController()
    stop.current = controller
    setRunning(true)
    setError(undefined)
    upload(file.size, stepsFor(namespace, file, body, id), setProgress, controller.signal)
      .then(onDone)
      .catch((failure: unknown) => {
        if (controller.signal.aborted) return
        handleUnauthorized(failure)
        setError(failure)
      })
      .finally(() => setRunning(false))
  }
  const pause = (): void => stop.current?.abort()
  const abandon = (): void => {
    pause()
    if (id.current !== undefined)
      void client.call(abandonUpload, { params: { namespace, upload: id.current } }).catch(() => undefined)
  }
  return { progress, error, isRunning, start, pause, abandon }
}

function stepsFor(namespace: string, file: File, body: Begin, id: { current: string | undefined }) {
  const params = () => ({ namespace, upload: id.current ?? '' })
  return {
    begin: async (signal: AbortSignal) => {
      const begun = await client.call(beginUpload, { params: { namespace }, body, signal })
      id.current = begun.id
      return begun.offset
    },
    send: async (from: number, to: number, signal: AbortSignal) => {
      const url = serviceUrl + pathOf(continueUpload, { params: params(), query: { offset: from } })
      const headers = { ...sessionHeader, 'content-type': 'application/octet-stream' }
      const request = {
        method: 'PUT',
        headers,
        body: file.slice(from, to),
        credentials: 'same-origin',
        signal,
      } as const
      const lost = (cause: unknown): never => {
        throw new ConnectionError('lost', url, 'Connection lost. The upload resumes automatically…', '', cause)
      }
      const response = await fetch(url, request).catch(lost)
      const text = await response.text().catch(lost)
      // The offset is wrong, or the server still handles a chunk whose connection was lost: fetch the offset and
      // continue.
      if (response.status === 409) lost(text)
      if (!response.ok)
        throw errorFromAnswer(response.status, text, url, response.headers.get('retry-after') ?? undefined)
      return (JSON.parse(text) as { offset: number }).offset
    },
    finish: (signal: AbortSignal) => client.call(finishUpload, { params: params(), body: {}, signal }),
    isRetriable: (failure: unknown) =>
      // A proxy may time out before the server has finished a long last step.
      isTransient(failure) || (failure instanceof ApiError && failure.reason === 'Timeout'),
    nowMs: () => performance.now(),
  }
}
