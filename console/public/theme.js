// Sets the chosen theme, which `theme.ts` stores, before anything is drawn, so that the page does not flash. This is no
// module, because modules run after the page was parsed.
try {
  const theme = localStorage.getItem('svc3.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {}
