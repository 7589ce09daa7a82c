// /api/v1/swagger: Swagger UI from its package. The page loads nothing from other hosts and has no inline scripts.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { FastifyReply } from 'fastify'
import { base } from '../../api/operation.ts'
import type { App } from '../gate/charges.ts'
import { filesIn } from './static-files.ts'

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc3 API</title>
<link rel="stylesheet" href="${base}/swagger/files/swagger-ui.css">
<link rel="icon" href="${base}/swagger/files/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="${base}/swagger/files/swagger-ui-bundle.js"></script>
<script src="${base}/swagger/start.js"></script>
</body>
</html>
`

const start = `window.ui = SwaggerUIBundle({ url: '${base}/openapi.json', dom_id: '#swagger-ui', deepLinking: true, persistAuthorization: false, validatorUrl: null })\n`

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const headers = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const pages = { '': ['text/html', page], '/start.js': ['text/javascript', start] } as const
export const swaggerFiles = {
  'swagger-ui.css': 'text/css',
  'swagger-ui-bundle.js': 'text/javascript',
  'favicon-32x32.png': 'image/png',
} as const

/** An installed svc3 has these files next to its bundles instead of packages. */
function filesFolder(): string {
  const built = ['swagger-ui', '../swagger-ui'].map((name) => path.join(import.meta.dirname, name))
  const found = built.find((folder) => existsSync(folder))
  return found ?? path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
}

export function serveSwagger(app: App): void {
  const files = filesIn(filesFolder(), Object.keys(swaggerFiles))
  const serve = (name: string, handler: (reply: FastifyReply) => unknown): unknown =>
    app.route({
      method: 'GET',
      url: `${base}/swagger${name}`,
      config: { charge: 'file' },
      handler: (_request, reply) => handler(reply.headers(headers)),
    })
  for (const [name, [type, text]] of Object.entries(pages))
    serve(name, (reply) => reply.type(`${type}; charset=utf-8`).send(text))
  for (const [name, type] of Object.entries(swaggerFiles))
    serve(`/files/${name}`, async (reply) => {
      const bytes = (await files()).get(name)
      return reply.header('cache-control', 'max-age=3600').type(type).send(bytes)
    })
}
