/**
 * The kind of a failure: its address is not one that may be asked, nothing came back, it took too long, or what came
 * back is not an answer that can be given.
 */
export type UpstreamProblem = 'forbidden' | 'unreachable' | 'late' | 'unusable'

/** An upstream gave no usable answer. The message is for the log and for the owner of the upstream. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly problem: UpstreamProblem

  constructor(problem: UpstreamProblem, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.problem = problem
  }
}
