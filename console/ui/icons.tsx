// Icons of Lucide (ISC license). Only the ones listed here are bundled.
import {
  Activity,
  Box,
  Boxes,
  ChartColumn,
  ChartLine,
  Check,
  ChevronDown,
  ChevronRight,
  CircleAlert,
  CodeXml,
  Copy,
  Disc,
  Ellipsis,
  FileSliders,
  FolderTree,
  Gauge,
  History,
  type IconNode,
  KeyRound,
  Layers,
  LayoutDashboard,
  Menu,
  Monitor,
  Moon,
  Play,
  Plus,
  Search,
  Server,
  ShieldCheck,
  SquareTerminal,
  Sun,
  Upload,
  UserCog,
  WifiOff,
  X,
} from 'lucide'
import { createElement } from 'react'

const icons = {
  more: Ellipsis,
  copy: Copy,
  check: Check,
  close: X,
  menu: Menu,
  code: CodeXml,
  plus: Plus,
  search: Search,
  down: ChevronDown,
  right: ChevronRight,
  alert: CircleAlert,
  offline: WifiOff,
  terminal: SquareTerminal,
  system: Monitor,
  light: Sun,
  dark: Moon,
  overview: LayoutDashboard,
  vm: Box,
  image: Layers,
  iso: Disc,
  push: Upload,
  node: Server,
  config: FileSliders,
  pool: Boxes,
  quota: Gauge,
  runner: Play,
  events: Activity,
  charts: ChartLine,
  usage: ChartColumn,
  credentials: KeyRound,
  namespace: FolderTree,
  access: ShieldCheck,
  account: UserCog,
  legacy: History,
} as const satisfies Readonly<Record<string, IconNode>>

export type IconName = keyof typeof icons

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 2.6 : 1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {icons[name].map(([tag, attributes], index) => createElement(tag, { key: index, ...attributes }))}
    </svg>
  )
}

/** The logo as inline SVG, so that the page needs no image request. */
export const Logo = () => (
  <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="var(--accent)" />
    <path d={markPath} fill="none" stroke="#fff" strokeWidth="2.8" strokeLinecap="round" strokeLinejoin="round" />
  </svg>
)
const markPath = 'M10 9.6h9.6a2 2 0 0 1 2 2v8.8a2 2 0 0 1-2 2H10M14 16h7.6'
