// The table of commands: words, summary and module of each. Help reads it without loading any command.
import type { Command, CommandTable, Leaf } from '../command.ts'

/** Under two names. */
const login: Leaf = {
  summary: 'Log in',
  load: () => import('./user/login.ts'),
}

const logout: Leaf = { summary: 'Log out', load: () => import('./user/logout.ts') }

/** Commands that share a file. */
const users = (pick: (of: typeof import('../../operator/users.ts')) => Command) => async () => ({
  command: pick(await import('../../operator/users.ts')),
})
const service = (pick: (of: typeof import('../../operator/service.ts')) => Command) => async () => ({
  command: pick(await import('../../operator/service.ts')),
})

export const commands: CommandTable = {
  vm: {
    summary: 'Deploy, list, connect to and delete VMs',
    commands: {
      deploy: { summary: 'Deploy a VM', load: () => import('./vm/deploy.ts') },
      list: { summary: 'List VMs', load: () => import('./vm/list.ts') },
      show: { summary: 'Show everything about a VM', load: () => import('./vm/show.ts') },
      delete: { summary: 'Delete VMs and their disks', load: () => import('./vm/delete.ts') },
      ssh: { summary: 'Open a shell in a VM, or run a command', load: () => import('./vm/ssh.ts') },
      vnc: { summary: 'Forward a local port to the screen of a VM', load: () => import('./vm/vnc.ts') },
      logs: { summary: 'Show the serial console output of a VM', load: () => import('./vm/logs.ts') },
      start: { summary: 'Start a stopped VM (Intel)', load: () => import('./vm/start.ts') },
      stop: { summary: 'Stop a running VM (Intel)', load: () => import('./vm/stop.ts') },
      suspend: { summary: 'Suspend a running VM (Intel)', load: () => import('./vm/suspend.ts') },
      resume: { summary: 'Resume a suspended VM (Intel)', load: () => import('./vm/resume.ts') },
      revert: { summary: 'Revert a VM to its image (Intel)', load: () => import('./vm/revert.ts') },
      push: { summary: 'Push a VM to an OCI registry', load: () => import('./vm/push.ts') },
      'get-push-status': { summary: 'List push jobs', load: () => import('./vm/get-push-status.ts') },
      'cancel-push': { summary: 'Cancel a push job', load: () => import('./vm/cancel-push.ts') },
      resize: { summary: 'Enlarge the disk of a VM', load: () => import('./vm/resize.ts') },
      save: { summary: 'Save a running VM as a new image', load: () => import('./vm/save.ts') },
      commit: { summary: 'Save a running VM into its image', load: () => import('./vm/commit.ts') },
      label: { summary: 'Set or remove labels of a VM', load: () => import('./vm/label.ts') },
      extend: { summary: 'Set when a VM is deleted automatically', load: () => import('./vm/extend.ts') },
      connect: {
        summary: 'Connect standard input and output to a port of a VM',
        load: () => import('./vm/connect.ts'),
      },
    },
  },
  'vm-config': {
    summary: 'Named sets of options for svc3 vm deploy',
    aliases: ['vmc'],
    commands: {
      list: { summary: 'List VM configurations', load: () => import('./vm-config/list.ts') },
      show: { summary: 'Show everything about a VM configuration', load: () => import('./vm-config/show.ts') },
      create: { summary: 'Create a VM configuration', load: () => import('./vm-config/create.ts') },
      update: { summary: 'Change a VM configuration', load: () => import('./vm-config/update.ts') },
      delete: { summary: 'Delete VM configurations', load: () => import('./vm-config/delete.ts') },
    },
  },
  pool: {
    summary: 'Keep VMs booted, so that a deploy takes one at once',
    commands: {
      list: { summary: 'List pools', load: () => import('./pool/list.ts') },
      describe: { summary: 'Show a pool, and why it is not full', load: () => import('./pool/describe.ts') },
      create: { summary: 'Create a pool of warm VMs', load: () => import('./pool/create.ts') },
      update: { summary: 'Change, pause or resume a pool', load: () => import('./pool/update.ts') },
      rotate: { summary: 'Replace the warm VMs of a pool', load: () => import('./pool/rotate.ts') },
      drain: { summary: 'Pause a pool and remove its warm VMs', load: () => import('./pool/drain.ts') },
      delete: { summary: 'Delete pools and their warm VMs', load: () => import('./pool/delete.ts') },
    },
  },
  'runner-pool': {
    summary: 'Run the jobs of GitHub Actions, each in a fresh VM',
    aliases: ['rp'],
    commands: {
      list: { summary: 'List runner pools', load: () => import('./runner-pool/list.ts') },
      describe: {
        summary: 'Show a runner pool, and what is in its way',
        load: () => import('./runner-pool/describe.ts'),
      },
      jobs: { summary: 'List the jobs of a runner pool', load: () => import('./runner-pool/jobs.ts') },
      doctor: {
        summary: 'Say what keeps a runner pool from running jobs',
        load: () => import('./runner-pool/doctor.ts'),
      },
      create: { summary: 'Create a pool of runners for GitHub Actions', load: () => import('./runner-pool/create.ts') },
      update: { summary: 'Change or resume a runner pool', load: () => import('./runner-pool/update.ts') },
      pause: { summary: 'Take no jobs for a while', load: () => import('./runner-pool/pause.ts') },
      drain: { summary: 'Pause a runner pool and remove idle runners', load: () => import('./runner-pool/drain.ts') },
      delete: { summary: 'Delete runner pools', load: () => import('./runner-pool/delete.ts') },
    },
  },
  image: {
    summary: 'Manage images, which VMs are deployed from',
    commands: {
      list: { summary: 'List images', load: () => import('./image/list.ts') },
      show: { summary: 'Show everything about an image', load: () => import('./image/show.ts') },
      copy: { summary: 'Copy an image', load: () => import('./image/copy.ts') },
      generate: { summary: 'Create an empty image (Intel)', load: () => import('./image/generate.ts') },
      demo: { summary: 'Add a built-in Linux image', load: () => import('./image/demo.ts') },
      upload: { summary: 'Upload a disk as an image', load: () => import('./image/upload.ts') },
      download: { summary: 'Download the disk of an image', load: () => import('./image/download.ts') },
      'set-description': {
        summary: 'Set the description of an image',
        load: () => import('./image/set-description.ts'),
      },
      protect: {
        summary: 'Keep an image from being changed or deleted',
        load: () => import('./image/protect.ts'),
      },
      restore: { summary: 'Restore an earlier version of an image', load: () => import('./image/restore.ts') },
      delete: { summary: 'Delete images', load: () => import('./image/delete.ts') },
    },
  },
  imagecache: {
    summary: 'Manage copies of images on nodes',
    aliases: ['ic'],
    commands: {
      list: { summary: 'List the images on nodes', load: () => import('./imagecache/list.ts') },
      info: { summary: 'Show which nodes have an image', load: () => import('./imagecache/info.ts') },
      add: { summary: 'Copy an image to nodes and keep it there', load: () => import('./imagecache/add.ts') },
      remove: { summary: 'Remove an image from nodes', load: () => import('./imagecache/remove.ts') },
    },
  },
  iso: {
    summary: 'Manage ISOs, which Intel-based VMs are installed from',
    commands: {
      list: { summary: 'List ISOs', load: () => import('./iso/list.ts') },
      show: { summary: 'Show everything about an ISO', load: () => import('./iso/show.ts') },
      copy: { summary: 'Copy an ISO', load: () => import('./iso/copy.ts') },
      upload: { summary: 'Upload an ISO', load: () => import('./iso/upload.ts') },
      download: { summary: 'Download an ISO', load: () => import('./iso/download.ts') },
      'set-description': { summary: 'Set the description of an ISO', load: () => import('./iso/set-description.ts') },
      delete: { summary: 'Delete ISOs', load: () => import('./iso/delete.ts') },
    },
  },
  'remote-image': {
    summary: 'Pull images from remotes',
    commands: {
      list: { summary: 'List images on remotes', load: () => import('./remote-image/list.ts') },
      pull: { summary: 'Pull an image from a remote', load: () => import('./remote-image/pull.ts') },
    },
  },
  'remote-iso': {
    summary: 'Pull ISOs from remotes',
    commands: {
      list: { summary: 'List ISOs on remotes', load: () => import('./remote-iso/list.ts') },
      pull: { summary: 'Pull an ISO from a remote', load: () => import('./remote-iso/pull.ts') },
    },
  },
  node: {
    summary: 'Manage nodes, the hosts that run VMs',
    commands: {
      list: { summary: 'List nodes', load: () => import('./node/list.ts') },
      show: { summary: 'Show everything about a node', load: () => import('./node/show.ts') },
      tag: { summary: 'Add a tag to a node', load: () => import('./node/tag.ts') },
      untag: { summary: 'Remove a tag from a node', load: () => import('./node/untag.ts') },
      namespace: { summary: 'Move a node to another namespace', load: () => import('./node/namespace.ts') },
      cordon: { summary: 'Keep new VMs off a node', load: () => import('./node/cordon.ts') },
      uncordon: { summary: 'Allow new VMs on a node again', load: () => import('./node/uncordon.ts') },
      drain: { summary: 'Drain a node before maintenance', load: () => import('./node/drain.ts') },
      delete: { summary: 'Remove a node from the cluster', load: () => import('./node/delete.ts') },
      'join-token': {
        summary: 'Create a token with which hosts join as nodes',
        load: () => import('./node/join-token.ts'),
      },
    },
  },
  registrycredential: {
    summary: 'Manage credentials for OCI registries',
    aliases: ['regcred'],
    commands: {
      list: { summary: 'List registry credentials', load: () => import('./registrycredential/list.ts') },
      add: { summary: 'Add credentials for a registry', load: () => import('./registrycredential/add.ts') },
      remove: {
        summary: 'Remove the credentials for a registry',
        load: () => import('./registrycredential/remove.ts'),
      },
    },
  },
  namespace: {
    summary: 'Manage namespaces',
    aliases: ['ns'],
    commands: {
      list: { summary: 'List your namespaces', load: () => import('./namespace/list.ts') },
      create: { summary: 'Create a namespace', load: () => import('./namespace/create.ts') },
      delete: { summary: 'Delete a namespace', load: () => import('./namespace/delete.ts') },
    },
  },
  quota: {
    summary: 'Limit what the VMs of a namespace use',
    commands: {
      show: { summary: 'Show limits, use and shares', load: () => import('./quota/show.ts') },
      set: { summary: 'Set limits, and weights of owners', load: () => import('./quota/set.ts') },
    },
  },
  serviceaccount: {
    summary: 'Manage service accounts, for CI systems and other programs',
    aliases: ['sa'],
    commands: {
      list: { summary: 'List service accounts', load: () => import('./serviceaccount/list.ts') },
      create: { summary: 'Create a service account', load: () => import('./serviceaccount/create.ts') },
      delete: {
        summary: 'Delete a service account and its tokens',
        load: () => import('./serviceaccount/delete.ts'),
      },
      token: { summary: 'Create a token for a service account', load: () => import('./serviceaccount/token.ts') },
    },
  },
  rolebinding: {
    summary: 'Manage access to a namespace',
    aliases: ['rb'],
    commands: {
      'list-subjects': {
        summary: 'List who has access to a namespace',
        load: () => import('./rolebinding/list-subjects.ts'),
      },
      'add-subject': {
        summary: 'Give users and service accounts access',
        load: () => import('./rolebinding/add-subject.ts'),
      },
      'remove-subject': {
        summary: 'Remove access from users and service accounts',
        load: () => import('./rolebinding/remove-subject.ts'),
      },
    },
  },
  migrate: {
    summary: 'Migrate from the 2.4.x API: find old calls and their replacements',
    commands: {
      scan: { summary: 'Find calls of the 2.4.x API in files and logs', load: () => import('./migrate/scan.ts') },
      map: { summary: 'Show what replaces each call of the 2.4.x API', load: () => import('./migrate/map.ts') },
      usage: { summary: 'Show who still calls the 2.4.x API (admin)', load: () => import('./migrate/usage.ts') },
    },
  },
  events: { summary: 'List changes in a namespace, and who made them', load: () => import('./events.ts') },
  usage: { summary: 'Show what VMs used, by day and owner', load: () => import('./usage.ts') },
  login,
  logout,
  console: { summary: 'Open the web console in your browser', load: () => import('./console.ts') },
  whoami: { summary: 'Show your user, server and context', load: () => import('./whoami.ts') },
  user: {
    summary: 'Log in and out, and manage tokens',
    commands: {
      login,
      logout,
      'get-token': { summary: 'Print a valid token', load: () => import('./user/get-token.ts') },
      kubeconfig: { summary: 'Print or add a kubeconfig for kubectl', load: () => import('./user/kubeconfig.ts') },
      'set-token': { summary: 'Store a token', load: () => import('./user/set-token.ts') },
    },
  },
  config: {
    summary: 'Configure servers and contexts',
    commands: {
      set: { summary: 'Set the server, namespace or trusted certificate', load: () => import('./config/set.ts') },
      view: { summary: 'List contexts', load: () => import('./config/view.ts') },
      'use-context': { summary: 'Switch to another context', load: () => import('./config/use-context.ts') },
    },
  },
  dev: {
    summary: 'Run server and nodes on this machine, to try svc3',
    load: () => import('../../operator/dev.ts'),
  },
  server: {
    summary: 'Run and manage the server',
    load: () => import('../../operator/server.ts'),
    commands: {
      install: {
        summary: 'Install the server as a service of this host',
        load: service(({ installCommand }) => installCommand('server')),
      },
      status: {
        summary: 'Show the status of the service',
        load: service(({ statusCommand }) => statusCommand('server')),
      },
      upgrade: {
        summary: 'Upgrade the service to this version',
        load: service(({ upgradeCommand }) => upgradeCommand('server')),
      },
      uninstall: {
        summary: 'Remove the service, keep its data',
        load: service(({ uninstallCommand }) => uninstallCommand('server')),
      },
      'rotate-master-key': {
        summary: 'Encrypt stored secrets with a new master key',
        hiddenAliases: ['rotate-key'],
        load: () => import('../../operator/rotate-master-key.ts'),
      },
      'rotate-signing-keys': {
        summary: 'Sign tokens with a new key',
        hiddenAliases: ['rotate-keys'],
        load: () => import('../../operator/rotate-signing-keys.ts'),
      },
      backup: { summary: 'Back up everything to one file', load: () => import('../../operator/backup.ts') },
      restore: { summary: 'Restore a backup', load: () => import('../../operator/restore.ts') },
      'migrate-store': {
        summary: 'Move records from SQLite to etcd',
        load: () => import('../../operator/migrate-store.ts'),
      },
      forget: {
        summary: 'Remove a lost server from the cluster',
        load: () => import('../../operator/forget-server.ts'),
      },
      users: {
        summary: 'Manage users of the built-in identity provider',
        commands: {
          list: { summary: 'List users', load: users(({ list }) => list) },
          add: { summary: 'Add a user', load: users(({ add }) => add) },
          remove: { summary: 'Remove a user and their tokens', load: users(({ remove }) => remove) },
          reset: { summary: 'Set a new password', load: users(({ reset }) => reset) },
        },
      },
    },
  },
  agent: {
    summary: 'Run a node: join a cluster and run VMs on this host',
    load: () => import('../../operator/agent.ts'),
    commands: {
      install: {
        summary: 'Install the agent as a service of this host',
        load: service(({ installCommand }) => installCommand('agent')),
      },
      status: {
        summary: 'Show the status of the service',
        load: service(({ statusCommand }) => statusCommand('agent')),
      },
      upgrade: {
        summary: 'Upgrade the service to this version',
        load: service(({ upgradeCommand }) => upgradeCommand('agent')),
      },
      uninstall: {
        summary: 'Remove the service, keep its data',
        load: service(({ uninstallCommand }) => uninstallCommand('agent')),
      },
      doctor: { summary: 'Check whether this host can be a node', load: () => import('../../operator/doctor.ts') },
    },
  },
  completion: { summary: 'Print a shell completion script', load: () => import('./completion.ts') },
  version: { summary: 'Show client and server versions', load: () => import('./version.ts') },
  help: { summary: 'Show help for a command', load: () => import('./help.ts') },
  __complete: { summary: 'List candidates for a word', hidden: true, load: () => import('./complete.ts') },
}
