// Entry point: loads the session, then renders the app into the static frame of index.html.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { beginSession } from './api/session.ts'
import { routerBase } from './api/urls.ts'
import { App } from './app.tsx'
import { ErrorBoundary } from './error-boundary.tsx'

const place = document.getElementById('console')
// The static frame stays visible until the session is known.
await beginSession()
if (place)
  createRoot(place).render(
    <StrictMode>
      <ErrorBoundary>
        <Router base={routerBase}>
          <App />
        </Router>
      </ErrorBoundary>
    </StrictMode>,
  )
