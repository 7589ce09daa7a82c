// /console: serves the web console from dist/console. Hashed files are cached forever, the page is not. Every unknown
// path below /console/ gets the page, which does its own routing.
import path from 'node:path'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { App } from '../gate/charges.ts'
import { serveConsoleLogin } from './console-login.ts'
import { type SessionServices, serveConsoleSession } from './console-session.ts'
import { type Files, filesIn } from './static-files.ts'

export interface ConsoleServices extends SessionServices {
  /** The built console, which may be missing. */
  readonly consoleFolder: string
}

/** Only our own files, and nothing inline. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const consoleHeaders = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
} as const

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}
const fileForm = /^(?:assets\/)?[A-Za-z0-9_-][\w.-]*$/
const relativeBase = '<base href="./">'

export function serveConsole(app: App, services: ConsoleServices): void {
  const { enabled, pathPrefix } = services.settings.console
  if (!enabled) return
  const root = `${pathPrefix}/console/`
  const login = serveConsoleLogin(app, services)
  serveConsoleSession(app, services, login)

  const filesNow = filesIn(services.consoleFolder)
  const serve = (url: string, handler: RouteOptions['handler']): unknown =>
    app.route({ method: 'GET', url, config: { charge: 'file' }, handler })

  serve('/console', (_request, reply) => reply.redirect(root, 308))
  serve('/console/*', async (request, reply) => {
    const name = (request.params as { '*': string })['*']
    reply.headers(consoleHeaders)
    const files = await filesNow()
    const sent = fileForm.test(name) && sendFile(files, name, request, reply)
    if (sent) return sent
    // Names of records may contain dots too, so only requests for HTML get the page.
    const isPage = !name.startsWith('assets/') && (path.extname(name) === '' || wantsPage(request))
    return isPage ? sendPage(files, reply) : sendMissing(name, reply)
  })
  // Browsers at the service's root get the console.
  serve('/', (request, reply) => {
    if (wantsPage(request)) return reply.redirect(root)
    throw new ApiError('NotFound', 'Path not found', { hint: 'See /api/v1/swagger' })
  })

  function sendPage(files: Files, reply: FastifyReply): FastifyReply {
    reply.header('cache-control', 'no-store').type(types['.html'] as string)
    const page = files.get('index.html')?.toString()
    if (page === undefined) return reply.code(503).send(notBuilt)
    return reply.send(page.replace(relativeBase, `<base href="${root}">`))
  }
}

function sendFile(files: Files, name: string, request: FastifyRequest, reply: FastifyReply): FastifyReply | false {
  const type = types[path.extname(name)]
  if (type === undefined || name === 'index.html') return false
  const packed = acceptsBrotli(request) ? files.get(`${name}.br`) : undefined
  const bytes = packed ?? files.get(name)
  if (!bytes) return false
  const isHashed = name.startsWith('assets/')
  reply
    .header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
    .header('vary', 'accept-encoding')
  if (packed) reply.header('content-encoding', 'br')
  return reply.type(type).send(bytes)
}

const wantsPage = ({ headers }: FastifyRequest): boolean => /\btext\/html\b/.test(headers.accept ?? '')

function acceptsBrotli({ headers }: FastifyRequest): boolean {
  const codings = String(headers['accept-encoding'] ?? '').split(',')
  return codings.some((coding) => /^\s*br\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/.test(coding))
}

/** The page was probably opened before the service was updated. */
function sendMissing(name: string, reply: FastifyReply): never {
  reply.header('cache-control', 'no-store')
  throw new ApiError('NotFound', `Console file ${name.slice(0, 100)} not found`, { hint: 'Reload the page' })
}

const notBuilt = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>svc3 console</title>
</head>
<body>
<h1>The console is not built</h1>
<p>This copy of svc3 was started without it. Run <code>npm run build</code> in its folder, then load this page again;
the service need not be restarted.</p>
<p>The API is described at <a href="../api/v1/swagger">/api/v1/swagger</a>.</p>
</body>
</html>
`
