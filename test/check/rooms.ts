// What each room may import, enforced by architecture.test.ts. A room is a folder with a README that says what it is for; folders
// without one belong to the nearest room above. `x (a.ts, b.ts)` lets only these files of the room import x (its doors);
// `server/` stands for all rooms of the server.

interface Imports {
  readonly imports: string
  readonly packages?: string
}

export const rooms: Readonly<Record<string, Imports>> = {
  agent: {
    imports:
      'agent/captures, agent/doctor (agent.ts), agent/host, agent/images, agent/link, agent/measurements, agent/state, agent/vms, api, client, drivers, platform',
  },
  'agent/captures': {
    imports:
      'agent/images, agent/link, api, client, drivers, images/content, images/format, images/pack, oci, oci/artifact, oci/registry, oci/tart, platform, rules',
  },
  'agent/doctor': {
    imports: 'agent/host, agent/link, api, client, drivers, drivers/apple, drivers/qemu, platform, rules',
  },
  'agent/host': { imports: 'api, drivers, platform, rules', packages: 'node:sqlite' },
  'agent/images': {
    imports:
      'packages/tiny-guests, agent/link, agent/state, api, drivers, images/content, images/format, images/nbd, images/pack, oci, oci/artifact, oci/registry, platform, rules',
  },
  'agent/link': { imports: 'api, client, platform, rules' },
  'agent/measurements': { imports: 'drivers, platform' },
  'agent/state': { imports: 'api, drivers, platform' },
  'agent/vms': {
    imports: 'agent/captures, agent/images, agent/link, agent/state, api, drivers, platform',
    packages: 'ssh2 (grow.ts)',
  },
  api: { imports: '', packages: 'typebox' },
  auth: {
    imports: 'platform, rules, store, store/records',
    packages: 'jose (node-keys.ts, signing-keys.ts, tokens.ts)',
  },
  'auth/login': { imports: 'api, auth, platform, rules, store, store/records', packages: 'jose' },
  'auth/provider': {
    imports: 'api, auth, auth/login, platform, rules, store, store/records',
    packages: 'jose (issuer-keys.ts, issuer.ts), oidc-provider (issuer.ts, login-adapter.ts, provider.ts)',
  },
  bin: { imports: 'cli, control-plane' },
  cli: {
    imports:
      'api, cli/commands (process.ts), cli/connect (called-as.ts, command.ts, context.ts, explain.ts, failure.ts), cli/line (await-change.ts, confirm.ts, context.ts, delete-each.ts, explain.ts, failure.ts, follow-record.ts, input.ts, main.ts, process.ts, record-commands.ts), cli/output (all-namespaces.ts, await-change.ts, command.ts, context.ts, failure.ts, follow-record.ts, note-few.ts, record-commands.ts), client, rules',
  },
  'cli/commands': {
    imports:
      'api, cli, cli/connect, cli/line, cli/output, client, legacy, legacy/scan, operator, platform, rules, rules/pools, rules/runners',
    packages: 'typebox (console.ts), yaml (user/kubeconfig.ts)',
  },
  'cli/connect': {
    imports: 'api, cli, cli/line, cli/output, client, platform, rules',
    packages: 'openid-client (oidc.ts), yaml (kube-namespace.ts)',
  },
  'cli/line': { imports: 'api, cli, rules' },
  'cli/output': { imports: 'cli, rules', packages: 'yaml (output.ts)' },
  client: {
    imports:
      'api, platform (answer.ts, call-until-done.ts, client.ts, follow-logs.ts, relabel.ts, tunnel.ts, watch.ts)',
    packages: 'ws (tunnel.ts)',
  },
  console: {
    imports:
      'console/api, console/pages (app.tsx, shortcuts.tsx), console/ui (app.tsx, error-boundary.tsx, frame.tsx, login.tsx, nav.ts, shortcuts.tsx), api (drafts.ts)',
    packages: '@novnc/novnc (novnc.d.ts), react, react-dom (main.tsx), wouter',
  },
  'console/api': {
    imports:
      'console (page-transport.ts, session.ts, watch-socket.ts), api, client, platform (live.ts, upload.ts), rules',
    packages: 'react',
  },
  'console/pages': {
    imports:
      'console, console/api, console/show-as, console/ui, console/ui/table, api, client, legacy, platform (images/upload.tsx), rules, rules/pools',
    packages:
      '@novnc/novnc (vms/open-screen.ts, vms/screen.tsx, vms/thumbnail.tsx), @xterm/addon-fit (vms/terminal.tsx), @xterm/xterm (vms/terminal.tsx), react, uplot (charts/plot.tsx), wouter',
  },
  'console/show-as': { imports: 'api, rules, rules/pools' },
  'console/ui': {
    imports: 'console, console/api, console/show-as, api, client, rules',
    packages:
      'downshift (select.tsx), lucide (icons.tsx), react, react-dom (menu.tsx), wouter (dialog.tsx, page.tsx, toasts.tsx)',
  },
  'console/ui/table': {
    imports: 'console/api, console/show-as, console/ui, api, client',
    packages: 'react, react-dom (visible-rows.ts), wouter (query.ts)',
  },
  'control-plane': {
    imports:
      'auth, auth/login, auth/provider, controllers, controllers/runners, controllers/scheduling, images, images/content, images/format, images/pack, oci/artifact, oci/content, oci/registry, platform, rules, rules/runners, runners, server, server/cluster, server/config, server/gate, server/http, server/images, server/kubernetes, server/legacy, server/nodes, server/remotes, server/routes, server/tls, server/transfer, server/vms, store, store/records',
    packages: 'package.json (version.ts)',
  },
  controllers: { imports: 'platform, rules, store, store/records' },
  'controllers/runners': {
    imports: 'api, controllers, controllers/scheduling, platform, rules, rules/runners, runners, store, store/records',
  },
  'controllers/scheduling': { imports: 'api, controllers, platform, rules, rules/pools, store, store/records' },
  drivers: {
    imports: 'api, drivers/apple (index.ts), drivers/qemu (index.ts), drivers/qemu/network (index.ts), platform, rules',
  },
  'drivers/apple': { imports: 'api, drivers, platform' },
  'drivers/qemu': {
    imports:
      'api, drivers, drivers/qemu/captures (driver.ts, launch.ts, process.ts, start.ts, vm.ts, warm.ts), drivers/qemu/control (arguments.ts, driver.ts, ending.ts, launch.ts, process.ts, start.ts, supervisor.ts, usage.ts, vm.ts, warm.ts), drivers/qemu/disks (arguments.ts, driver.ts, launch.ts, start.ts, vm.ts, warm.ts), drivers/qemu/network (arguments.ts, driver.ts, ending.ts, launch.ts, probe.ts, shape.ts, start.ts, supervisor.ts, usage.ts, vm.ts, warm.ts), platform',
  },
  'drivers/qemu/captures': {
    imports: 'drivers, drivers/qemu/control, drivers/qemu/disks, drivers/qemu/network, platform',
  },
  'drivers/qemu/control': { imports: 'drivers, drivers/qemu/network, platform' },
  'drivers/qemu/disks': { imports: 'drivers, drivers/qemu/control, platform' },
  'drivers/qemu/network': { imports: 'drivers, platform' },
  host: { imports: 'platform' },
  images: { imports: 'images/content, images/format, images/pack, images/qcow2, platform, rules' },
  'images/content': { imports: 'images/format, platform' },
  'images/format': { imports: 'api, rules', packages: 'typebox' },
  'images/nbd': { imports: 'platform' },
  'images/pack': { imports: 'images/content, images/format, images/qcow2, platform' },
  'images/qcow2': { imports: 'images/content, images/format, platform, rules' },
  legacy: { imports: 'api' },
  'legacy/scan': { imports: 'legacy' },
  oci: { imports: 'images/content, images/format, oci/artifact, oci/tart, platform' },
  'oci/artifact': { imports: 'images/content, images/format, images/pack' },
  'oci/content': { imports: 'images/content, images/format, images/pack, oci/artifact, oci/registry, platform' },
  'oci/registry': { imports: 'images/content, images/format, oci/artifact, platform, rules' },
  'oci/tart': { imports: 'images/content, images/format, images/pack, oci/artifact, platform, rules' },
  operator: {
    imports:
      'agent, agent/doctor, agent/host, agent/link, api, auth, auth/provider, cli, cli/connect, cli/line, cli/output, client, control-plane, drivers, drivers/apple, drivers/qemu, drivers/qemu/network, host, images/content, images/pack, oci/artifact, oci/content, platform, rules, server/cluster, server/config, store, store/records',
    packages: 'ssh2 (create-macos.ts)',
  },
  'packages/tiny-guests': { imports: 'platform' },
  platform: { imports: '', packages: 'pino (log.ts), undici (http.ts)' },
  rules: { imports: 'api' },
  'rules/pools': { imports: 'api, rules', packages: 'cron-parser (cron.ts)' },
  'rules/runners': { imports: 'api, rules' },
  runners: { imports: 'platform, rules, rules/runners', packages: 'jose (github/connection.ts)' },
  server: {
    imports:
      'api, auth, legacy, platform (base-app.ts), server/browser, server/cluster, server/config, server/gate, server/http, server/legacy, server/lists, server/operations, server/routes, server/transfer, store',
    packages: 'fastify',
  },
  'server/browser': {
    imports: 'api, auth, auth/login, auth/provider, platform, server/gate, server/http, store',
    packages: 'fastify',
  },
  'server/cluster': {
    imports: 'api, auth, images/content, platform, server/tls, server/transfer, store, store/records',
    packages: 'fastify (forward-request.ts, staleness-guard.ts)',
  },
  'server/config': { imports: 'rules', packages: 'ajv, typebox' },
  'server/gate': {
    imports: 'api, auth, auth/login, platform, rules, server/config, store, store/records',
    packages: 'fastify',
  },
  'server/http': {
    imports: 'api, auth, images/content, legacy, platform, rules, rules/runners, server/tls, store, store/records',
    packages:
      'ajv (validate.ts), fast-json-stringify (render.ts), fastify, prom-client (metrics.ts), typebox (render.ts)',
  },
  'server/images': {
    imports:
      'api, images, images/content, images/format, images/pack, images/qcow2, platform, rules, server/http, server/lists, server/transfer, store, store/records',
  },
  'server/kubernetes': {
    imports:
      'api, auth, platform, rules, server (app.ts), server/cluster, server/config, server/gate, server/http, server/kubernetes/changes, server/kubernetes/kinds, server/lists, server/operations, server/tls, server/transfer, store, store/records',
    packages: 'fastify, typebox',
  },
  'server/kubernetes/changes': {
    imports: 'api, server/http (duplicate-fields.ts, patch.ts), server/kubernetes/kinds, store/records',
  },
  'server/kubernetes/kinds': { imports: 'api, platform, server/operations, store/records', packages: 'typebox' },
  'server/legacy': {
    imports:
      'api, auth, auth/provider, legacy, platform, rules, server/config, server/gate, server/http, server/lists, server/nodes, server/operations, server/transfer, store, store/records',
    packages: 'fastify',
  },
  'server/lists': {
    imports: 'api, auth, platform, rules, server/gate, server/http, server/transfer, store',
    packages: 'fastify (watches.ts)',
  },
  'server/nodes': {
    imports:
      'api, auth, platform, rules, server/cluster, server/images, server/lists, server/tls, server/transfer, store, store/records',
    packages:
      '@peculiar/x509 (certificates.ts), ssh2 (guest-commands.ts, ssh-login.ts, terminals.ts), typebox (terminals.ts)',
  },
  'server/operations': {
    imports: 'api, auth, platform, server/gate, server/http, server/lists, server/transfer, store/records',
    packages: 'typebox',
  },
  'server/remotes': {
    imports:
      'api, auth, images/content, images/pack, images/qcow2, oci, oci/artifact, oci/registry, platform, rules, server/config, server/http, server/images, server/transfer, store, store/records',
    packages: 'typebox (folder.ts, image-pulls.ts)',
  },
  'server/routes': {
    imports:
      'api, auth, auth/login, images/content, images/format, images/pack, images/qcow2, platform, rules, rules/pools, rules/runners, server/cluster, server/config, server/gate, server/http, server/images, server/legacy, server/lists, server/nodes, server/operations, server/remotes, server/tls, server/transfer, server/vms, store, store/records',
  },
  'server/tls': { imports: 'api, auth, platform, store, store/records', packages: 'selfsigned (self-signed.ts)' },
  'server/transfer': {
    imports: 'api, auth, images/content, platform, rules, server/config, server/gate, server/http',
    packages: '@fastify/multipart (multipart.ts), fastify, typebox (multipart.ts), ws (upgrades.ts)',
  },
  'server/vms': {
    imports:
      'api, platform, rules, rules/runners, server/cluster, server/gate, server/images, server/nodes, server/remotes, store, store/records',
  },
  store: { imports: 'platform, store/etcd (open.ts), store/sqlite (open.ts)' },
  'store/etcd': { imports: 'platform, store' },
  'store/records': { imports: 'api, platform, store' },
  'store/sqlite': { imports: 'platform, store', packages: 'node:sqlite (database.ts, sqlite-thread.ts, whole.ts)' },
}
