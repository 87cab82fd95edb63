import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

type Metric = {
  /** Follows `tollbase_`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

type Labels = Readonly<Record<string, string>>

/** A metric that grows when something happens. */
export type CountedMetric<Happening> = Metric & {
  /** The values of its labels. */
  readonly toLabels?: (happening: Happening) => Labels
  /** The amount that it grows by, 1 when not given; for a histogram the value that is observed. */
  readonly toAmount?: (happening: Happening) => number
  /** Makes it a histogram. */
  readonly buckets?: readonly number[]
}

/** A metric whose value is read when metrics are asked for. */
export type ReadMetric<State> = Metric & {
  /** False where the service has nothing of the kind. */
  readonly isThere?: (state: State) => boolean
  /** One number, or one for each set of labels; undefined where it is not known now. */
  readonly read: (state: State) => number | undefined | readonly (readonly [Labels, number])[]
}

/** Registers metrics of one event, and returns the function that counts it in all of them. */
export function makeCounter<Happening>(
  registry: Registry,
  metrics: readonly CountedMetric<Happening>[],
): (happening: Happening) => void {
  const counts = metrics.map(({ toLabels = () => ({}), toAmount = () => 1, ...metric }) => {
    const count = makeCount(registry, metric)
    return (happening: Happening) => count(toLabels(happening), toAmount(happening))
  })
  return (happening) => {
    for (const count of counts) count(happening)
  }
}

function makeCount(
  registry: Registry,
  { name, help, labels = [], buckets }: Metric & { readonly buckets?: readonly number[] },
): (labels: Labels, amount: number) => void {
  const options = { name: `tollbase_${name}`, help, labelNames: labels, registers: [registry] }
  if (buckets === undefined) {
    const counter = new Counter(options)
    return (series, amount) => counter.inc(series, amount)
  }
  const histogram = new Histogram({ ...options, buckets: [...buckets] })
  return (series, amount) => histogram.observe(series, amount)
}

/** Registers metrics of a state, and returns the function that sets all of them. */
export function makeReader<State>(
  registry: Registry,
  metrics: readonly ReadMetric<State>[],
): (state: State) => void {
  const gauges = new Map<ReadMetric<State>, Gauge>()
  return (state) => {
    for (const metric of metrics) {
      if (metric.isThere?.(state) === false) continue
      const gauge = gauges.get(metric) ?? makeGauge(registry, metric)
      gauges.set(metric, gauge)
      setGauge(gauge, metric.read(state), metric)
    }
  }
}

function makeGauge(registry: Registry, { name, help, labels = [] }: Metric): Gauge {
  return new Gauge({ name: `tollbase_${name}`, help, labelNames: labels, registers: [registry] })
}

/** Series that are no longer there, or not known now, go. */
function setGauge(
  gauge: Gauge,
  value: ReturnType<ReadMetric<never>['read']>,
  { labels = [] }: Pick<Metric, 'labels'>,
): void {
  if (typeof value === 'number') gauge.set(value)
  else if (value === undefined && labels.length === 0) gauge.remove()
  else {
    gauge.reset()
    for (const [series, amount] of value ?? []) gauge.set(series, amount)
  }
}
