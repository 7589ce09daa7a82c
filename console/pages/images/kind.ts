// Images and ISOs have the same pages: what differs between them stands here, once.
import {
  copyImage,
  deleteImage,
  describeImage,
  downloadImage,
  getImage,
  listImages,
} from '../../../src/api/images/images.ts'
import { copyIso, deleteIso, describeIso, downloadIso, getIso, listIsos } from '../../../src/api/images/isos.ts'
import { imageTexts as words } from './texts.ts'

export const imageKinds = {
  image: {
    kind: 'image',
    path: '/images',
    title: words.title,
    emptyTitle: words.emptyTitle,
    emptyText: words.emptyText,
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
    title: words.isosTitle,
    emptyTitle: words.isosEmptyTitle,
    emptyText: words.isosEmptyText,
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
