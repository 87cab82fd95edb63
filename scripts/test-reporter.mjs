/** Minutes without the end of any test or hook of a file after which its test that runs is named. */
const patienceMinutes = 4

/**
 * A reporter of vitest for long runs. It names each test that passed only when it was tried again, and what failed at
 * first: none is lost in the noise, and each is a bug. It also names what a file is at while nothing in it ends: a run
 * that is cut by its time limit would not tell.
 * @public vitest loads it by its path (.ci/run).
 */
export default class TestReporter {
  #flaky = []
  /** By file: what runs in it, since when, and whether that was told. */
  #running = new Map()
  #timer

  onTestRunStart() {
    this.#timer = setInterval(() => this.#nameSlow(), 30_000)
    this.#timer.unref()
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleStart(module) {
    this.#note(module, 'its first test')
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleEnd(module) {
    this.#running.delete(module.relativeModuleId)
  }

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseReady(test) {
    this.#note(test.module, test.fullName)
  }

  /** @param {import('vitest/node').ReportedHookContext} hook */
  onHookStart({ name, entity }) {
    this.#note(entity.module ?? entity, `${name} of ${entity.fullName ?? 'the file'}`)
  }

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    this.#note(test.module, `what follows ${test.fullName}`)
    if (test.diagnostic()?.flaky !== true) return
    const why = (test.result().errors ?? []).map(({ message, stacks }) => {
      const [at] = stacks ?? []
      return `\n    ${message.slice(0, 1000)}${at === undefined ? '' : ` (${at.file}:${at.line})`}`
    })
    this.#flaky.push(`${test.module.relativeModuleId} > ${test.fullName}${why.join('')}`)
  }

  onTestRunEnd() {
    clearInterval(this.#timer)
    for (const name of this.#flaky) console.log(`flaky (passed when it was tried again): ${name}`)
  }

  #note(module, what) {
    this.#running.set(module.relativeModuleId, { what, since: Date.now(), isTold: false })
  }

  #nameSlow() {
    for (const [file, at] of this.#running) {
      const minutes = (Date.now() - at.since) / 60_000
      if (minutes < patienceMinutes || at.isTold) continue
      at.isTold = true
      console.log(`still running after ${minutes.toFixed(0)} minutes: ${file} > ${at.what}`)
    }
  }
}
