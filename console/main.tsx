// The beginning: who is logged in, then the pages in place of the empty frame that came with the file.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { routerBase } from './api/places.ts'
import { beginSession } from './api/session.ts'
import { App } from './app.tsx'
import { Broken } from './broken.tsx'

const place = document.getElementById('console')
// Until it is known whose page it is, the frame of the file stays: it is there long before this script.
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
