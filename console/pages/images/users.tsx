// The VMs, configurations and pools that use an image: the first few by name, with a link to all.
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Image } from '../../../src/api/images/images.ts'
import { listPools } from '../../../src/api/vms/pools.ts'
import { listVmConfigs } from '../../../src/api/vms/vm-configs.ts'
import { vmsElsewhere } from '../../../src/rules/ownership.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { Facts } from '../../ui/page.tsx'
import { VmLink } from '../links.tsx'
import { listPath, poolPath } from '../paths.ts'

const named = 5

interface Group<T> {
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  readonly link: (item: T) => ReactNode
  readonly path: string
  /** A count of users whose names are not visible here. */
  readonly others?: string | undefined
}

function Group<T>({ items, keyOf, link, path, others }: Group<T>) {
  if (items.length === 0 && others === undefined) return 'None'
  return (
    <ul className="names">
      {items.slice(0, named).map((item) => (
        <li key={keyOf(item)}>{link(item)}</li>
      ))}
      {items.length > named && (
        <li>
          <Link href={path}>{`+ ${items.length - named}`}</Link>
        </li>
      )}
      {others !== undefined && <li className="muted">{others}</li>}
    </ul>
  )
}

const Vms = ({ image: { usedBy, usedElsewhere }, path }: { readonly image: Image; readonly path: string }) => (
  <Group
    items={usedBy}
    keyOf={String}
    link={(vm) => <VmLink vm={vm} />}
    path={path}
    others={usedElsewhere === undefined ? undefined : vmsElsewhere(usedElsewhere)}
  />
)

export const VmsOfIso = ({ iso }: { readonly iso: Image }) => <Facts facts={{ VMs: <Vms image={iso} path="/vms" /> }} />

export function UsersOfImage({ image }: { readonly image: Image }) {
  const { name } = image
  const { shown } = useNamespaces()
  const configs = useLive(listVmConfigs, shown, `image=${name}`)
  const pools = useLive(listPools, shown)
  const using = new Set(configs.items.map((config) => `${config.namespace}/${config.name}`))
  const filled = pools.items.filter(({ namespace, config }) => using.has(`${namespace}/${config}`))
  const [onlyConfig] = using.size === 1 ? configs.items : []
  return (
    <Facts
      facts={{
        VMs: <Vms image={image} path={listPath('/vms', { image: name })} />,
        Configurations: configs.isLoaded && (
          <Group
            items={configs.items}
            keyOf={(config) => `${config.namespace}/${config.name}`}
            link={(config) => <Link href={listPath('/configurations', { search: config.name })}>{config.name}</Link>}
            path={listPath('/configurations', { image: name })}
          />
        ),
        Pools: configs.isLoaded && pools.isLoaded && (
          <Group
            items={filled}
            keyOf={(pool) => `${pool.namespace}/${pool.name}`}
            link={(pool) => <Link href={poolPath(pool)}>{pool.name}</Link>}
            path={listPath('/pools', onlyConfig ? { config: onlyConfig.name } : {})}
          />
        ),
      }}
    />
  )
}
