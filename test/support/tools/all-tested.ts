// Whether a test does all that it can, as the longer suites ask it to, or the part that `npm test` has time for.
export const isAllTested = Boolean(process.env.SVC3_TEST_ALL)
