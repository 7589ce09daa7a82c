// The beginning: who is logged in, then the frame with its pages.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { noticeRefusal } from './api/calls.ts'
import { routerBase } from './api/places.ts'
import { beginSession } from './api/session.ts'
import { App } from './app.tsx'
import { Broken } from './broken.tsx'
import { applyTheme } from './theme.ts'

applyTheme()
void beginSession()

const queries = new QueryClient({
  defaultOptions: {
    // The client tries again by itself where that is safe.
    queries: { retry: false, refetchOnWindowFocus: true, staleTime: 5_000, throwOnError: false },
    mutations: { retry: false },
  },
})
queries.getQueryCache().config.onError = noticeRefusal

const place = document.getElementById('console')
if (place)
  createRoot(place).render(
    <StrictMode>
      <Broken>
        <QueryClientProvider client={queries}>
          <Router base={routerBase}>
            <App />
          </Router>
        </QueryClientProvider>
      </Broken>
    </StrictMode>,
  )
