// What was made of a VM: images that were saved of it or committed to, pushes; how far each is. Stays when messages pass.
import { Link } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listPushJobs } from '../../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Bar } from '../../ui/bar.tsx'
import { Card } from '../../ui/page.tsx'
import { ImageState, PushState } from '../../ui/state.tsx'
import { imagesOf } from '../nodes/fleet.ts'
import { imagePath } from '../paths.ts'

export function VmResults({ vm }: { readonly vm: Vm }) {
  const images = imagesOf(vm, useLive(listImages, [vm.namespace]).items)
  const pushes = useLive(listPushJobs, [vm.namespace]).items.filter((job) => job.vm === vm.name)
  if (images.length + pushes.length === 0) return null
  return (
    <Card title={texts.vms.results}>
      <ul className="feed" aria-label={texts.vms.results}>
        {images.map((image) => (
          <li key={image.name}>
            <Link href={imagePath('image', image.name)}>{image.name}</Link>
            <ImageState image={image} />
            {image.progress && <Bar label={image.name} value={image.progress.percent} of={100} />}
          </li>
        ))}
        {pushes.map((job) => (
          <li key={job.name}>
            <Link href="/pushes">{job.image}</Link>
            <PushState job={job} />
            {job.status === 'Running' && <Bar label={job.image} value={job.progress.percent} of={100} />}
          </li>
        ))}
      </ul>
    </Card>
  )
}
