// The routes. The overview is in the first bundle, other pages load when they are opened.
import { type ComponentType, lazy, Suspense } from 'react'
import { Link, Route, Switch } from 'wouter'
import { useSession } from './api/session.ts'
import { ErrorBoundary } from './error-boundary.tsx'
import { Frame } from './frame.tsx'
import { Login, LoginAgain } from './login.tsx'
import type { Named } from './pages/paths.ts'
import { Overview } from './pages/service/overview.tsx'
import { OpenedDialog } from './ui/dialog.tsx'
import { Empty, Loading, Page } from './ui/page.tsx'
import { Toasts } from './ui/toasts.tsx'

type Params = { readonly [name: string]: string | undefined }
/** Pages without a name in their path ignore these props. */
type PageComponent = ComponentType<Named>

const page = <M,>(load: () => Promise<M>, name: keyof M) =>
  lazy(async () => ({ default: (await load())[name] as PageComponent }))

const pages: readonly (readonly [path: string, component: PageComponent])[] = [
  ['/', Overview],
  ['/vms', page(() => import('./pages/vms/list.tsx'), 'VmList')],
  ['/vms/:namespace/:name', page(() => import('./pages/vms/detail.tsx'), 'VmDetail')],
  ['/vms/:namespace/:name/screen', page(() => import('./pages/vms/screen.tsx'), 'Screen')],
  ['/vms/:namespace/:name/terminal', page(() => import('./pages/vms/terminal.tsx'), 'TerminalPage')],
  ['/images', page(() => import('./pages/images/list.tsx'), 'ImageList')],
  ['/images/:name', page(() => import('./pages/images/detail.tsx'), 'ImageDetail')],
  ['/isos', page(() => import('./pages/images/list.tsx'), 'IsoList')],
  ['/isos/:name', page(() => import('./pages/images/detail.tsx'), 'IsoDetail')],
  ['/pushes', page(() => import('./pages/vms/push-jobs.tsx'), 'PushJobs')],
  ['/nodes', page(() => import('./pages/nodes/list.tsx'), 'NodeList')],
  ['/nodes/:namespace/:name', page(() => import('./pages/nodes/detail.tsx'), 'NodeDetail')],
  ['/configurations', page(() => import('./pages/vms/configs.tsx'), 'VmConfigs')],
  ['/pools', page(() => import('./pages/pools/list.tsx'), 'PoolList')],
  ['/pools/:namespace/:name', page(() => import('./pages/pools/detail.tsx'), 'PoolDetail')],
  ['/quota', page(() => import('./pages/pools/quota.tsx'), 'QuotaPage')],
  ['/runner-pools', page(() => import('./pages/runner-pools/list.tsx'), 'RunnerPoolList')],
  ['/runner-pools/:namespace/:name', page(() => import('./pages/runner-pools/detail.tsx'), 'RunnerPoolDetail')],
  ['/events', page(() => import('./pages/service/events.tsx'), 'Events')],
  ['/usage', page(() => import('./pages/service/usage.tsx'), 'UsagePage')],
  ['/charts', page(() => import('./pages/service/charts.tsx'), 'ChartsPage')],
  ['/credentials', page(() => import('./pages/access/credentials.tsx'), 'Credentials')],
  ['/namespaces', page(() => import('./pages/access/namespaces.tsx'), 'Namespaces')],
  ['/access', page(() => import('./pages/access/role-bindings.tsx'), 'RoleBindings')],
  ['/accounts', page(() => import('./pages/access/service-accounts.tsx'), 'ServiceAccounts')],
  ['/legacy', page(() => import('./pages/service/legacy-usage.tsx'), 'LegacyUsagePage')],
]

export function App() {
  const { phase } = useSession()
  if (phase === 'out' || phase === 'unreachable') return <Login />
  return (
    <Frame>
      <Switch>
        {pages.map(([path, PageView]) => (
          <Route key={path} path={path}>
            {(params) => (
              <ErrorBoundary key={JSON.stringify(params)}>
                <Suspense fallback={<Waiting />}>
                  <PageView {...decoded(params as Params)} />
                </Suspense>
              </ErrorBoundary>
            )}
          </Route>
        ))}
        <Route>
          <Page title="Page not found">
            <Empty title="Page not found" text="Check the address. The object may have been deleted.">
              <Link href="/">Go to the overview</Link>
            </Empty>
          </Page>
        </Route>
      </Switch>
      {phase === 'ended' && <LoginAgain />}
      <OpenedDialog />
      <Toasts />
    </Frame>
  )
}

/** The router does not decode path parameters. */
const decoded = ({ namespace = '', name = '' }: Params): Named => ({
  namespace: safeDecode(namespace),
  name: safeDecode(name),
})

function safeDecode(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

const Waiting = () => (
  <div className="page">
    <Loading />
  </div>
)
