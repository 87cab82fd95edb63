/**
 * A reporter of vitest that names each test that passed only when it was tried again: none is lost in the noise, and
 * each is a bug.
 * @public vitest loads it by its path (.ci/run).
 */
export default class FlakyReporter {
  #flaky = []

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    if (test.diagnostic()?.flaky === true)
      this.#flaky.push(`${test.module.relativeModuleId} > ${test.fullName}`)
  }

  onTestRunEnd() {
    for (const name of this.#flaky) console.log(`flaky (passed when it was tried again): ${name}`)
  }
}
