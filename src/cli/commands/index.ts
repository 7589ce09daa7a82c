// The table of commands: names, summaries and modules. Help of groups and completion read it without loading a command.
import type { Command, CommandTable, Leaf } from '../command.ts'

type LeafText = Omit<Leaf, 'load'>

/** Entries for the commands that a module exports. The module is loaded when one of them runs. */
const from = <Word extends string>(
  load: () => Promise<{ readonly commands: Readonly<Record<Word, Command>> }>,
  texts: Readonly<Record<Word, string | LeafText>>,
): CommandTable =>
  Object.fromEntries(
    Object.entries<string | LeafText>(texts).map(([word, text]) => [
      word,
      {
        ...(typeof text === 'string' ? { summary: text } : text),
        load: async () => ({ command: (await load()).commands[word as Word] }),
      },
    ]),
  )

const login: Leaf = { summary: 'Log in', load: () => import('./user/login.ts') }
const logout: Leaf = { summary: 'Log out', load: () => import('./user/logout.ts') }

/** Commands for the system service that runs a server or an agent on this host. */
const service = (role: 'server' | 'agent'): CommandTable =>
  from(async () => ({ commands: (await import('../../operator/service.ts')).serviceCommands(role) }), {
    install: `Install the ${role} as a service of this host`,
    status: 'Show the status of the service',
    upgrade: 'Upgrade the service to this version',
    uninstall: 'Remove the service, keep its data',
  })

export const commands: CommandTable = {
  vm: {
    summary: 'Deploy, list, connect to and delete VMs',
    commands: {
      deploy: { summary: 'Deploy a VM', load: () => import('./vm/deploy.ts') },
      ...from(() => import('./vm/records.ts'), {
        list: 'List VMs',
        show: 'Show everything about a VM',
        delete: 'Delete VMs and their disks',
        label: 'Set or remove labels of a VM',
        extend: 'Set when a VM is deleted automatically',
      }),
      ssh: { summary: 'Open a shell in a VM, or run a command', load: () => import('./vm/ssh.ts') },
      vnc: { summary: 'Forward a local port to the screen of a VM', load: () => import('./vm/vnc.ts') },
      connect: {
        summary: 'Connect standard input and output to a port of a VM',
        load: () => import('./vm/connect.ts'),
      },
      logs: { summary: 'Show the serial console output of a VM', load: () => import('./vm/logs.ts') },
      ...from(() => import('./vm/power.ts'), {
        start: 'Start a stopped VM (Intel)',
        stop: 'Stop a running VM (Intel)',
        suspend: 'Suspend a running VM (Intel)',
        resume: 'Resume a suspended VM (Intel)',
        revert: 'Revert a VM to its image (Intel)',
      }),
      resize: { summary: 'Enlarge the disk of a VM', load: () => import('./vm/resize.ts') },
      ...from(() => import('./vm/capture.ts'), {
        save: 'Save a running VM as a new image',
        commit: 'Save a running VM into its image',
      }),
      ...from(() => import('./vm/pushes.ts'), {
        push: 'Push a VM to an OCI registry',
        'get-push-status': 'List push jobs',
        'cancel-push': 'Cancel a push job',
      }),
    },
  },
  'vm-config': {
    summary: 'Named sets of options for svc3 vm deploy',
    aliases: ['vmc'],
    commands: from(() => import('./vm-config.ts'), {
      list: 'List VM configurations',
      show: 'Show everything about a VM configuration',
      create: 'Create a VM configuration',
      update: 'Change a VM configuration',
      delete: 'Delete VM configurations',
    }),
  },
  pool: {
    summary: 'Keep VMs booted, so that a deploy takes one at once',
    commands: from(() => import('./pool.ts'), {
      list: 'List pools',
      describe: 'Show a pool, and why it is not full',
      create: 'Create a pool of warm VMs',
      update: 'Change, pause or resume a pool',
      rotate: 'Replace the warm VMs of a pool',
      drain: 'Pause a pool and remove its warm VMs',
      delete: 'Delete pools and their warm VMs',
    }),
  },
  'runner-pool': {
    summary: 'Run the jobs of GitHub Actions, each in a fresh VM',
    aliases: ['rp'],
    commands: {
      ...from(() => import('./runner-pool/runner-pool.ts'), {
        list: 'List runner pools',
        describe: 'Show a runner pool and its problems',
        jobs: 'List the jobs of a runner pool',
        create: 'Create a pool of runners for GitHub Actions',
        update: 'Change or resume a runner pool',
        pause: 'Pause a runner pool',
        drain: 'Pause a runner pool and remove idle runners',
        delete: 'Delete runner pools',
      }),
      doctor: { summary: 'Diagnose why jobs do not run', load: () => import('./runner-pool/doctor.ts') },
    },
  },
  image: {
    summary: 'Manage images, which VMs are deployed from',
    commands: {
      ...from(() => import('./image/image.ts'), {
        list: 'List images',
        show: 'Show everything about an image',
        copy: 'Copy an image',
        generate: 'Create an empty image (Intel)',
        demo: 'Add a built-in Linux image',
        upload: 'Upload a disk as an image',
        download: 'Download the disk of an image',
        'set-description': 'Set the description of an image',
        protect: 'Keep an image from being changed or deleted',
        restore: 'Restore an earlier version of an image',
        delete: 'Delete images',
      }),
      'create-macos': {
        summary: 'Install macOS on this Mac, and push it as an image',
        load: () => import('../../operator/create-macos.ts'),
      },
    },
  },
  imagecache: {
    summary: 'Manage copies of images on nodes',
    aliases: ['ic'],
    commands: from(() => import('./imagecache.ts'), {
      list: 'List the images on nodes',
      info: 'Show which nodes have an image',
      add: 'Copy an image to nodes and keep it there',
      remove: 'Remove an image from nodes',
    }),
  },
  iso: {
    summary: 'Manage ISOs, which Intel-based VMs are installed from',
    commands: from(() => import('./image/iso.ts'), {
      list: 'List ISOs',
      show: 'Show everything about an ISO',
      copy: 'Copy an ISO',
      upload: 'Upload an ISO',
      download: 'Download an ISO',
      'set-description': 'Set the description of an ISO',
      delete: 'Delete ISOs',
    }),
  },
  'remote-image': {
    summary: 'Pull images from remotes',
    commands: from(async () => ({ commands: (await import('./image/remote.ts')).imageCommands }), {
      list: 'List images on remotes',
      pull: 'Pull an image from a remote',
    }),
  },
  'remote-iso': {
    summary: 'Pull ISOs from remotes',
    commands: from(async () => ({ commands: (await import('./image/remote.ts')).isoCommands }), {
      list: 'List ISOs on remotes',
      pull: 'Pull an ISO from a remote',
    }),
  },
  node: {
    summary: 'Manage nodes, the hosts that run VMs',
    commands: from(() => import('./node.ts'), {
      list: 'List nodes',
      show: 'Show everything about a node',
      tag: 'Add a tag to a node',
      untag: 'Remove a tag from a node',
      namespace: 'Move a node to another namespace',
      cordon: 'Keep new VMs off a node',
      uncordon: 'Allow new VMs on a node again',
      drain: 'Drain a node before maintenance',
      delete: 'Remove a node from the cluster',
      'join-token': 'Create a token with which hosts join as nodes',
      expected: 'List the hosts that are expected to join',
    }),
  },
  registrycredential: {
    summary: 'Manage credentials for OCI registries',
    aliases: ['regcred'],
    commands: from(() => import('./registrycredential.ts'), {
      list: 'List registry credentials',
      add: 'Add credentials for a registry',
      remove: 'Remove the credentials for a registry',
    }),
  },
  namespace: {
    summary: 'Manage namespaces',
    aliases: ['ns'],
    commands: from(() => import('./namespace.ts'), {
      list: 'List your namespaces',
      create: 'Create a namespace',
      delete: 'Delete a namespace',
    }),
  },
  quota: {
    summary: 'Limit what the VMs of a namespace use',
    commands: from(() => import('./quota.ts'), {
      show: 'Show limits, use and shares',
      set: 'Set limits, and weights of owners',
    }),
  },
  serviceaccount: {
    summary: 'Manage service accounts, for CI systems and other programs',
    aliases: ['sa'],
    commands: from(() => import('./serviceaccount.ts'), {
      list: 'List service accounts',
      create: 'Create a service account',
      'set-role': 'Make a service account an administrator, or a developer',
      delete: 'Delete a service account and its tokens',
      token: 'Create a token for a service account',
    }),
  },
  rolebinding: {
    summary: 'Manage access to a namespace',
    aliases: ['rb'],
    commands: from(() => import('./rolebinding.ts'), {
      'list-subjects': 'List who has access to a namespace',
      'add-subject': 'Give users and service accounts access',
      'remove-subject': 'Remove access from users and service accounts',
    }),
  },
  migrate: {
    summary: 'Migrate from Orka: carry a 3.x cluster over, and find old calls of the 2.4.x API',
    commands: {
      from: { summary: 'Carry a cluster of Orka 3.x over (admin)', load: () => import('./migrate/from.ts') },
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
    commands: from(() => import('./config.ts'), {
      set: 'Set the server, namespace or trusted certificate',
      view: 'List contexts',
      'use-context': 'Switch to another context',
    }),
  },
  dev: {
    summary: 'Run server and nodes on this machine, to try svc3',
    load: () => import('../../operator/dev.ts'),
  },
  server: {
    summary: 'Run and manage the server',
    load: () => import('../../operator/server.ts'),
    commands: {
      ...service('server'),
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
      token: {
        summary: 'Create a token for an administrator, without a browser',
        load: async () => ({ command: (await import('../../operator/users.ts')).tokenCommand }),
      },
      users: {
        summary: 'Manage users of the built-in identity provider',
        commands: from(() => import('../../operator/users.ts'), {
          list: 'List users',
          add: 'Add a user',
          remove: 'Remove a user and their tokens',
          reset: 'Set a new password',
        }),
      },
    },
  },
  agent: {
    summary: 'Run a node: join a cluster and run VMs on this host',
    load: () => import('../../operator/agent.ts'),
    commands: {
      ...service('agent'),
      doctor: { summary: 'Check whether this host can be a node', load: () => import('../../operator/doctor.ts') },
      acceptance: {
        summary: 'Try this Mac in half an hour, and write a report',
        load: () => import('../../operator/acceptance.ts'),
      },
    },
  },
  completion: { summary: 'Print a shell completion script', load: () => import('./completion.ts') },
  version: { summary: 'Show client and server versions', load: () => import('./version.ts') },
  help: { summary: 'Show help for a command', load: () => import('./help.ts') },
  __complete: { summary: 'List candidates for a word', hidden: true, load: () => import('./complete.ts') },
}
