// Whether tests run completely, as in the longer suites, or only the part for `npm test`.
export const isAllTested = Boolean(process.env.SVC3_TEST_ALL)
