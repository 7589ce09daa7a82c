// The color theme: light, dark or that of the system. Kept in localStorage.
import { useSyncExternalStore } from 'react'
import { createListeners } from './api/listeners.ts'

export const themes = ['system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]
const key = 'svc3.theme'
const listeners = createListeners()

const stored = (): Theme => themes.find((each) => each === localStorage.getItem(key)) ?? 'system'

function applyTheme(): void {
  const theme = stored()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(key, theme)
  applyTheme()
  listeners.notify()
}

const darkSystem = matchMedia('(prefers-color-scheme: dark)')

/** For content that CSS cannot style, such as a canvas. */
export function useIsDark(): boolean {
  const theme = useTheme()
  const isSystemDark = useSyncExternalStore(
    (listener) => {
      darkSystem.addEventListener('change', listener)
      return () => darkSystem.removeEventListener('change', listener)
    },
    () => darkSystem.matches,
  )
  return theme === 'system' ? isSystemDark : theme === 'dark'
}

export const useTheme = (): Theme => useSyncExternalStore(listeners.subscribe, stored)
