// The table of commands: words, summary and module of each. Help reads it without loading any command.
import type { Command, CommandTable, Leaf } from '../command.ts'

/** Under two names. */
const login: Leaf = {
  summary: 'Log in at the identity provider of the service',
  load: () => import('./user/login.ts'),
}

/** Commands that share a file. */
const users = (pick: (of: typeof import('../../operator/users.ts')) => Command) => async () => ({
  command: pick(await import('../../operator/users.ts')),
})
const service = (pick: (of: typeof import('../../operator/service.ts')) => Command) => async () => ({
  command: pick(await import('../../operator/service.ts')),
})

export const commands: CommandTable = {
  vm: {
    summary: 'Virtual machines: deploy, look, log in, power, resize, save, delete',
    commands: {
      deploy: { summary: 'Deploy a VM', load: () => import('./vm/deploy.ts') },
      list: { summary: 'List the VMs of a namespace', load: () => import('./vm/list.ts') },
      delete: { summary: 'Delete VMs and their disks', load: () => import('./vm/delete.ts') },
      ssh: { summary: 'Log in to a VM, or run a command in it', load: () => import('./vm/ssh.ts') },
      vnc: { summary: 'Open a local port to the screen of a VM', load: () => import('./vm/vnc.ts') },
      logs: { summary: 'Show what a VM wrote to its serial console', load: () => import('./vm/logs.ts') },
      start: { summary: 'Power on a stopped VM (Intel)', load: () => import('./vm/start.ts') },
      stop: { summary: 'Power off a running VM (Intel)', load: () => import('./vm/stop.ts') },
      suspend: { summary: 'Freeze a running VM (Intel)', load: () => import('./vm/suspend.ts') },
      resume: { summary: 'Let a suspended VM go on (Intel)', load: () => import('./vm/resume.ts') },
      revert: { summary: 'Return a VM to its image (Intel)', load: () => import('./vm/revert.ts') },
      push: { summary: 'Push a VM to an OCI registry', load: () => import('./vm/push.ts') },
      'get-push-status': { summary: 'Show push jobs', load: () => import('./vm/get-push-status.ts') },
      'cancel-push': { summary: 'Cancel a push job', load: () => import('./vm/cancel-push.ts') },
      resize: { summary: 'Enlarge the disk of a VM', load: () => import('./vm/resize.ts') },
      save: { summary: 'Save a running VM as a new image', load: () => import('./vm/save.ts') },
      commit: { summary: 'Save a running VM into its image', load: () => import('./vm/commit.ts') },
      extend: { summary: 'Set when a VM ends by itself', load: () => import('./vm/extend.ts') },
      connect: {
        summary: 'Join standard input and output with a port of a VM',
        load: () => import('./vm/connect.ts'),
      },
    },
  },
  'vm-config': {
    summary: 'VM configurations: named sets of values for deployments',
    aliases: ['vmc'],
    commands: {
      list: { summary: 'List the VM configurations of a namespace', load: () => import('./vm-config/list.ts') },
      create: { summary: 'Create a VM configuration', load: () => import('./vm-config/create.ts') },
      delete: { summary: 'Delete VM configurations', load: () => import('./vm-config/delete.ts') },
    },
  },
  image: {
    summary: 'Images that VMs are deployed from',
    commands: {
      list: { summary: 'List the images of the cluster', load: () => import('./image/list.ts') },
      copy: { summary: 'Copy an image', load: () => import('./image/copy.ts') },
      generate: { summary: 'Make an empty image (Intel)', load: () => import('./image/generate.ts') },
      upload: { summary: 'Upload the disk of a VM as an image', load: () => import('./image/upload.ts') },
      download: { summary: 'Download the disk of an image', load: () => import('./image/download.ts') },
      'set-description': { summary: 'Describe an image', load: () => import('./image/set-description.ts') },
      delete: { summary: 'Delete images', load: () => import('./image/delete.ts') },
    },
  },
  imagecache: {
    summary: 'Copies of images on nodes',
    aliases: ['ic'],
    commands: {
      list: { summary: 'List which nodes have which images', load: () => import('./imagecache/list.ts') },
      info: { summary: 'Show which nodes have an image', load: () => import('./imagecache/info.ts') },
      add: { summary: 'Have nodes fetch an image, and keep it', load: () => import('./imagecache/add.ts') },
      remove: { summary: 'Have nodes drop an image', load: () => import('./imagecache/remove.ts') },
    },
  },
  iso: {
    summary: 'ISOs, discs that Intel-based VMs are installed from',
    commands: {
      list: { summary: 'List the ISOs of the cluster', load: () => import('./iso/list.ts') },
      copy: { summary: 'Copy an ISO', load: () => import('./iso/copy.ts') },
      upload: { summary: 'Upload an ISO', load: () => import('./iso/upload.ts') },
      download: { summary: 'Download an ISO', load: () => import('./iso/download.ts') },
      'set-description': { summary: 'Describe an ISO', load: () => import('./iso/set-description.ts') },
      delete: { summary: 'Delete ISOs', load: () => import('./iso/delete.ts') },
    },
  },
  'remote-image': {
    summary: 'Images that can be pulled from remotes',
    commands: {
      list: { summary: 'List the images that remotes have', load: () => import('./remote-image/list.ts') },
      pull: { summary: 'Pull an image from a remote', load: () => import('./remote-image/pull.ts') },
    },
  },
  'remote-iso': {
    summary: 'ISOs that can be pulled from remotes',
    commands: {
      list: { summary: 'List the ISOs that remotes have', load: () => import('./remote-iso/list.ts') },
      pull: { summary: 'Pull an ISO from a remote', load: () => import('./remote-iso/pull.ts') },
    },
  },
  node: {
    summary: 'Nodes, the hosts that VMs run on',
    commands: {
      list: { summary: 'List the nodes of a namespace', load: () => import('./node/list.ts') },
      tag: { summary: 'Give a node a tag', load: () => import('./node/tag.ts') },
      untag: { summary: 'Take a tag from a node', load: () => import('./node/untag.ts') },
      namespace: { summary: 'Move a node to another namespace', load: () => import('./node/namespace.ts') },
      cordon: { summary: 'Keep new VMs off a node', load: () => import('./node/cordon.ts') },
      uncordon: { summary: 'Let new VMs onto a node again', load: () => import('./node/uncordon.ts') },
      drain: { summary: 'Empty a node', load: () => import('./node/drain.ts') },
      delete: { summary: 'Remove a node from the cluster', load: () => import('./node/delete.ts') },
      'join-token': {
        summary: 'Make a token with which hosts join as nodes',
        load: () => import('./node/join-token.ts'),
      },
    },
  },
  registrycredential: {
    summary: 'Credentials for OCI registries, one set per registry and namespace',
    aliases: ['regcred'],
    commands: {
      list: { summary: 'List stored registry credentials', load: () => import('./registrycredential/list.ts') },
      add: { summary: 'Store credentials for a registry', load: () => import('./registrycredential/add.ts') },
      remove: {
        summary: 'Remove the credentials for a registry',
        load: () => import('./registrycredential/remove.ts'),
      },
    },
  },
  namespace: {
    summary: 'Namespaces, the scope of every other resource',
    aliases: ['ns'],
    commands: {
      list: { summary: 'List the namespaces that you may use', load: () => import('./namespace/list.ts') },
      create: { summary: 'Create a namespace', load: () => import('./namespace/create.ts') },
      delete: { summary: 'Delete a namespace', load: () => import('./namespace/delete.ts') },
    },
  },
  serviceaccount: {
    summary: 'Accounts for CI systems and other programs',
    aliases: ['sa'],
    commands: {
      list: { summary: 'List the service accounts of a namespace', load: () => import('./serviceaccount/list.ts') },
      create: { summary: 'Create a service account', load: () => import('./serviceaccount/create.ts') },
      delete: {
        summary: 'Delete a service account and its tokens',
        load: () => import('./serviceaccount/delete.ts'),
      },
      token: { summary: 'Make a token for a service account', load: () => import('./serviceaccount/token.ts') },
    },
  },
  rolebinding: {
    summary: 'Who may use a namespace',
    aliases: ['rb'],
    commands: {
      'list-subjects': {
        summary: 'List who may use a namespace',
        load: () => import('./rolebinding/list-subjects.ts'),
      },
      'add-subject': {
        summary: 'Let users and service accounts in',
        load: () => import('./rolebinding/add-subject.ts'),
      },
      'remove-subject': { summary: 'Take it away again', load: () => import('./rolebinding/remove-subject.ts') },
    },
  },
  migrate: {
    summary: 'From the 2.4.x API to this one: find old calls, and what replaces them',
    commands: {
      scan: { summary: 'Find calls of the 2.4.x API in files and logs', load: () => import('./migrate/scan.ts') },
      map: { summary: 'Show what replaces each call of the 2.4.x API', load: () => import('./migrate/map.ts') },
      usage: { summary: 'Show who still calls the 2.4.x API (admin)', load: () => import('./migrate/usage.ts') },
    },
  },
  events: { summary: 'What was changed in a namespace, and by whom', load: () => import('./events.ts') },
  login,
  user: {
    summary: 'Who you are to the service',
    commands: {
      login,
      logout: { summary: 'Forget the login', load: () => import('./user/logout.ts') },
      'get-token': { summary: 'Print a valid token', load: () => import('./user/get-token.ts') },
      'set-token': { summary: 'Keep a token that you were given', load: () => import('./user/set-token.ts') },
    },
  },
  config: {
    summary: 'Which service this command line talks to',
    commands: {
      set: { summary: 'Change where, and which certificates are trusted', load: () => import('./config/set.ts') },
      view: { summary: 'Show the contexts', load: () => import('./config/view.ts') },
      'use-context': { summary: 'Work with another context', load: () => import('./config/use-context.ts') },
    },
  },
  dev: {
    summary: 'Run the whole service on this machine, for development',
    load: () => import('../../operator/dev.ts'),
  },
  server: {
    summary: 'Run the control plane, and look after it',
    load: () => import('../../operator/server.ts'),
    commands: {
      install: {
        summary: 'Make it a service of this host',
        load: service(({ installCommand }) => installCommand('server')),
      },
      status: {
        summary: 'Show how that service stands',
        load: service(({ statusCommand }) => statusCommand('server')),
      },
      upgrade: {
        summary: 'Let that service run this version',
        load: service(({ upgradeCommand }) => upgradeCommand('server')),
      },
      uninstall: {
        summary: 'Remove that service, not its data',
        load: service(({ uninstallCommand }) => uninstallCommand('server')),
      },
      'rotate-master-key': {
        summary: 'Seal all stored secrets with a new key',
        hiddenAliases: ['rotate-key'],
        load: () => import('../../operator/rotate-master-key.ts'),
      },
      'rotate-signing-keys': {
        summary: 'Sign tokens with a new key',
        hiddenAliases: ['rotate-keys'],
        load: () => import('../../operator/rotate-signing-keys.ts'),
      },
      backup: { summary: 'Write everything into one file', load: () => import('../../operator/backup.ts') },
      restore: { summary: 'Restore a backup', load: () => import('../../operator/restore.ts') },
      'migrate-store': {
        summary: 'Move the records from SQLite to etcd',
        load: () => import('../../operator/migrate-store.ts'),
      },
      forget: {
        summary: 'Wait no longer for a server that is gone',
        load: () => import('../../operator/forget-server.ts'),
      },
      users: {
        summary: 'Users of the built-in identity provider, on this machine',
        commands: {
          list: { summary: 'List who can log in', load: users(({ list }) => list) },
          add: { summary: 'Add a user', load: users(({ add }) => add) },
          remove: { summary: 'Remove a user and their tokens', load: users(({ remove }) => remove) },
          reset: { summary: 'Give a user a new password', load: users(({ reset }) => reset) },
        },
      },
    },
  },
  agent: {
    summary: 'Run a node: join a cluster and run VMs on this host',
    load: () => import('../../operator/agent.ts'),
    commands: {
      install: {
        summary: 'Make the agent a service of this host',
        load: service(({ installCommand }) => installCommand('agent')),
      },
      status: { summary: 'Show how that service stands', load: service(({ statusCommand }) => statusCommand('agent')) },
      upgrade: {
        summary: 'Let that service run this version',
        load: service(({ upgradeCommand }) => upgradeCommand('agent')),
      },
      uninstall: {
        summary: 'Remove that service, not its data',
        load: service(({ uninstallCommand }) => uninstallCommand('agent')),
      },
      doctor: { summary: 'Look whether this host can be a node', load: () => import('../../operator/doctor.ts') },
    },
  },
  completion: { summary: 'Let a shell complete commands and names', load: () => import('./completion.ts') },
  version: { summary: 'Show the versions of this program and of the server', load: () => import('./version.ts') },
  help: { summary: 'Show help for a command', load: () => import('./help.ts') },
  __complete: { summary: 'What may come next on a line', hidden: true, load: () => import('./complete.ts') },
}
