/** One bug that is planted in the product's source for a run: a text that occurs once in the file is replaced. */
export type Mutant = {
  readonly name: string
  /** The file, relative to packages/server/src. */
  readonly file: string
  readonly find: string
  readonly put: string
  /** The one of the two simulations that must detect it. */
  readonly scene: 'market' | 'log'
  /** The first seed to try, for a bug that few seeds find. */
  readonly from?: number
  /** A subject of the market that its runs have, whatever chance says. */
  readonly subject?: string
}
