// Every attack with more requests, and for longer; see README.md.
process.env.SVC3_ATTACK_LONG = '1'
for (const kind of [
  'anonymous',
  'lowest',
  'developer',
  'connections',
  'node',
  'peers',
  'guest',
  'registry',
  'github',
  'random',
])
  await import(`./${kind}.full.test.ts`)
