/**
 * A reporter of vitest that names each test that passed only when it was tried again, and what failed at first: none is
 * lost in the noise, and each is a bug.
 * @public vitest loads it by its path (.ci/run).
 */
export default class FlakyReporter {
  #flaky = []

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    if (test.diagnostic()?.flaky !== true) return
    const why = (test.result().errors ?? []).map(({ message, stacks }) => {
      const [at] = stacks ?? []
      return `\n    ${message.slice(0, 1000)}${at === undefined ? '' : ` (${at.file}:${at.line})`}`
    })
    this.#flaky.push(`${test.module.relativeModuleId} > ${test.fullName}${why.join('')}`)
  }

  onTestRunEnd() {
    for (const name of this.#flaky) console.log(`flaky (passed when it was tried again): ${name}`)
  }
}
