// Entry point: loads the session, then renders the app into the static frame of index.html.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { routerBase } from './api/places.ts'
import { beginSession } from './api/session.ts'
import { App } from './app.tsx'
import { Broken } from './broken.tsx'

const place = document.getElementById('console')
// The static frame stays visible until the session is known.
await beginSession()
if (place)
  createRoot(place).render(
    <StrictMode>
      <Broken>
        <Router base={routerBase}>
          <App />
        </Router>
      </Broken>
    </StrictMode>,
  )
