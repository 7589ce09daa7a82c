// What differs between images and ISOs, which share their pages.
import {
  copyImage,
  deleteImage,
  describeImage,
  downloadImage,
  getImage,
  listImages,
} from '../../../src/api/images/images.ts'
import { copyIso, deleteIso, describeIso, downloadIso, getIso, listIsos } from '../../../src/api/images/isos.ts'
import { type ActionWords, deletionOf, wordsFor } from '../../ui/action-dialog.tsx'

const actionsFor = (noun: string) =>
  ({
    copy: {
      label: 'Copy',
      title: (name) => `Copy ${noun} ${name}`,
      text: 'Instant; the copy shares its data with the original.',
      done: (name) => `Copy ${name} created`,
    },
    describe: {
      label: 'Edit description',
      title: (name) => `Edit description of ${name}`,
      done: (name) => `Description of ${name} saved`,
    },
    pull: { label: 'Pull', title: () => `Pull ${noun}`, done: (name) => `Pulling ${name}` },
    delete: deletionOf(noun, 'This cannot be undone.'),
  }) satisfies Record<string, ActionWords>

export const imageActions = {
  image: actionsFor('image'),
  iso: actionsFor('ISO'),
  cacheAdd: {
    label: 'Cache on all nodes',
    title: (name) => `Cache image ${name} on all nodes`,
    text: 'Every node that can run the image downloads it now and keeps it, so VMs start right away.',
    done: (name) => `Caching image ${name} on all nodes`,
  },
  cacheRemove: {
    label: 'Remove from caches',
    title: (name) => `Remove image ${name} from all caches`,
    text: 'Nodes delete their cached copy unless a VM uses it. The image itself is kept.',
    done: (name) => `Removing image ${name} from caches`,
  },
  protect: wordsFor('image')(
    'Protect',
    'protected',
    'Only administrators can then delete or commit to it. All users can still deploy and copy it.',
  ),
  unprotect: {
    label: 'Remove protection',
    title: (name) => `Remove the protection of image ${name}`,
    text: 'Users with a VM deployed from it can then commit to it, and its owner can delete it.',
    done: (name) => `Protection of image ${name} removed`,
  },
  generate: {
    label: 'Create empty image',
    text: 'An empty disk for Intel-based VMs. Install a system on it from an ISO.',
    done: (name) => `Image ${name} created`,
  },
} satisfies Record<string, ActionWords | Record<string, ActionWords>>

export const imageKinds = {
  image: {
    kind: 'image',
    path: '/images',
    noun: 'Image',
    emptyText: 'VMs start from an image. Upload one, pull one from a registry, or save a VM as an image:',
    emptyCommand: 'svc3 image upload disk.qcow2',
    eventKind: 'images',
    list: listImages,
    get: getImage,
    deleted: 'DeleteImage',
    copy: copyImage,
    describe: describeImage,
    remove: deleteImage,
    download: downloadImage,
  },
  iso: {
    kind: 'iso',
    path: '/isos',
    noun: 'ISO',
    emptyText: 'Intel-based VMs can boot from an ISO, for example an installer. Upload one here or from a terminal:',
    emptyCommand: 'svc3 iso upload installer.iso',
    eventKind: 'isos',
    list: listIsos,
    get: getIso,
    deleted: 'DeleteIso',
    copy: copyIso,
    describe: describeIso,
    remove: deleteIso,
    download: downloadIso,
  },
} as const

export type ImageKind = (typeof imageKinds)[keyof typeof imageKinds]
