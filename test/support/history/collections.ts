// The collections of a history and their API: how each act is requested, and what a response shows.
import type { Operation, Shown } from './history.ts'

export interface Request {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly where: string
  readonly body?: object
}

type Acts = Partial<Record<Operation['act'], (target: Target) => Request>>

interface Target {
  /** Without the name of the collection. */
  readonly name: string
  readonly part: string
  readonly value: string
  readonly expected: string
}

interface Collection {
  readonly where: string
  readonly acts: Acts
  /** Chosen as often as they appear here. */
  readonly mix: readonly (Operation['act'] | 'list')[]
  /** Writes change a part of a record that always exists. */
  readonly hasParts: boolean
  readonly isDeletedLeniently: boolean
  newName(n: number): string
  shown(item: Item): Shown & { readonly name: string }
  /** Finds one record in a list. */
  selector?(name: string): string
}

/** The checked part of a response. */
export interface Item {
  readonly server?: string
  readonly username?: string
  readonly name?: string
  readonly tag?: string
  readonly orkaTags?: readonly string[]
  readonly resourceVersion: string
}

const inDefault = '/api/v1/namespaces/svc-default'
const [credentials, configs, nodes] = ['secrets/registrycredentials', 'vmconfigs', 'nodes'].map(
  (place) => `${inDefault}/${place}`,
) as [string, string, string]
const addCredential = ({ name, value }: Target, more: object = {}): Request => ({
  method: 'POST',
  where: `${credentials}/add`,
  body: { server: name, username: value, password: 'x', ...more },
})
const tag = ({ name, part }: Target, verb: string, more: object = {}): Request => ({
  method: 'POST',
  where: `${nodes}/${name}/${verb}`,
  body: { tag: part, ...more },
})

export const historyImage = 'empty'
export const historyNode = 'node-1'

export const collections: Readonly<Record<string, Collection>> = {
  credentials: {
    where: credentials,
    acts: {
      create: (target) => addCredential(target),
      put: (target) => addCredential(target, { replace: true }),
      update: (target) => addCredential(target, { replace: true, resourceVersion: target.expected }),
      delete: ({ name }) => ({ method: 'DELETE', where: `${credentials}/remove`, body: { server: name } }),
    },
    mix: ['create', 'create', 'create', 'put', 'update', 'update', 'update', 'delete', 'delete', 'list', 'list'],
    hasParts: false,
    isDeletedLeniently: false,
    newName: (n) => `https://r${n}.example.com`,
    shown: ({ server = '', username = '', resourceVersion }) => ({
      name: server,
      value: username,
      version: resourceVersion,
    }),
    selector: (name) => `server=${name}`,
  },
  configs: {
    where: configs,
    acts: {
      create: ({ name, value }) => ({
        method: 'POST',
        where: configs,
        body: { name, image: historyImage, tag: value },
      }),
      delete: ({ name }) => ({ method: 'DELETE', where: `${configs}/${name}` }),
      read: ({ name }) => ({ method: 'GET', where: `${configs}/${name}` }),
    },
    mix: ['create', 'create', 'create', 'delete', 'delete', 'read', 'read', 'read', 'list'],
    hasParts: false,
    isDeletedLeniently: true,
    newName: (n) => `config-${n}`,
    shown: ({ name = '', tag: value = '', resourceVersion }) => ({ name, value, version: resourceVersion }),
  },
  nodes: {
    where: nodes,
    acts: {
      put: (target) => tag(target, 'tag'),
      update: (target) => tag(target, 'tag', { resourceVersion: target.expected }),
      delete: (target) => tag(target, 'untag'),
    },
    mix: ['put', 'update', 'update', 'delete', 'delete', 'list', 'list'],
    hasParts: true,
    isDeletedLeniently: false,
    newName: (n) => `${historyNode}#t${n}`,
    shown: ({ name = '', orkaTags = [], resourceVersion }) => ({
      name,
      value: orkaTags.join(' '),
      version: resourceVersion,
    }),
  },
}
