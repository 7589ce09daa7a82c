// The beginning: who is logged in, then the frame with its pages.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { routerBase } from './api/places.ts'
import { beginSession } from './api/session.ts'
import { App } from './app.tsx'
import { Broken } from './broken.tsx'
import { applyTheme } from './theme.ts'

applyTheme()
void beginSession()

const place = document.getElementById('console')
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
