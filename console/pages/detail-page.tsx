// The page of one object: its state, its action menu, and a placeholder if it does not exist.
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Operation } from '../../src/api/operation.ts'
import type { Snapshot } from '../api/live-list.ts'
import { ActionsMenu, type MenuItem } from '../ui/menu.tsx'
import { Empty, Loading, Page } from '../ui/page.tsx'
import { ShowAsButton } from '../ui/show-as.tsx'
import { type ActionContext, useActionContext } from './action-context.ts'

interface Props<T> {
  readonly list: Snapshot<T>
  readonly name: string
  readonly noun: string
  /** The list page. */
  readonly path: string
  /** Omitted for images and ISOs, which belong to all namespaces. */
  readonly namespace?: string
  /** The operation for Show as command. */
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
  readonly state: (item: T) => ReactNode
  readonly itemsOf: (item: T, context: ActionContext) => readonly MenuItem[]
  /** Buttons beside the action menu. */
  readonly buttons?: (item: T) => ReactNode
  readonly children: (item: T, items: readonly MenuItem[]) => ReactNode
}

export function DetailPage<T extends { readonly name: string }>(props: Props<T>) {
  const { list, name, noun, path, namespace, operation, params, state, itemsOf, buttons, children } = props
  const context = useActionContext()
  const item = list.items.find((each) => each.name === name)
  const above = <Link href={path}>{`${noun}s`}</Link>
  if (!item)
    return (
      <Page title={name} above={above}>
        {list.isLoaded ? (
          <Empty
            title={`${noun} not found`}
            text={
              namespace === undefined
                ? 'It may have been deleted or renamed.'
                : `${noun} ${name} not found in ${namespace}. It may have been deleted.`
            }
          />
        ) : (
          <Loading />
        )}
      </Page>
    )
  const items = itemsOf(item, { ...context, onDeleted: () => context.go(path) })
  return (
    <Page
      title={name}
      above={
        <>
          {above}
          {namespace !== undefined && <span>{`/ ${namespace}`}</span>}
        </>
      }
      beside={state(item)}
      actions={
        <>
          <ShowAsButton operation={operation} input={{ params }} />
          {buttons?.(item)}
          <ActionsMenu name={name} items={items} />
        </>
      }
    >
      {children(item, items)}
    </Page>
  )
}
