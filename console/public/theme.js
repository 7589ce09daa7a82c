// The theme that was chosen, before anything is drawn: a page in the other one first would flash. No module, since those wait.
// `theme.ts` writes what is read here.
try {
  const theme = localStorage.getItem('svc3.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {}
