/* SPDX-License-Identifier: BSD-2-Clause */
/* A chart with its legend and its table.
 *
 * spec: { title, quantity, unit, axis, axisUnit, logX, logY,
 *         series: [{ name, run, points: [{ x, y, low, high, statistics }] }],
 *         quoted: [{ name, x, y }] }
 *
 * A curve's name decides its colour (its run, if all have the same name); its run decides the dash.
 * 'low' and 'high' are optional, and so are the 'statistics' of a point (median, p99, ...), of which the reader
 * chooses the one that is drawn. */
import * as Plot from '@observablehq/plot';
import { csvLink } from './csv.js';
import { element, table } from './dom.js';
import { axisValue, count, value } from './format.js';

const COLOURS = 8;
const DASHES = ['', '6 3', '2 3', '8 3 2 3'];
const HEIGHT = 320;
const WIDTH_MIN = 280;
const TICKS_APART = 64; // pixels

const unitOf = (text, unit) => (unit ? `${text} in ${unit}` : text);
const label = (spec, series) => (series.run ? `${series.name} · ${series.run}` : series.name);

function styles(spec) {
    const names = [...new Set(spec.series.map(series => series.name))];
    const runs = [...new Set(spec.series.map(series => series.run))];
    return spec.series.map(series => {
        const index = names.length > 1 ? names.indexOf(series.name) : runs.indexOf(series.run);
        const dash = runs.length > 1 ? runs.indexOf(series.run) : Math.floor(index / COLOURS);
        return { colour: `var(--series-${index % COLOURS})`, dash: DASHES[dash % DASHES.length] };
    });
}

function axis(spec, width) {
    const sizes = spec.axisUnit === 'B';
    const all = spec.series.flatMap(series => series.points.map(point => point.x));
    const values = [...new Set(all)].sort((a, b) => a - b);
    const ticks = Math.max(2, Math.floor(width / TICKS_APART));
    const step = Math.ceil(values.length / ticks);
    return {
        type: spec.logX ? 'log' : 'linear',
        base: sizes ? 2 : 10,
        label: `${unitOf(spec.axis, spec.axisUnit)} →`,
        labelAnchor: 'right',
        ticks: spec.logX && values.length > 1 ? values.filter((_, i) => i % step === 0) : ticks,
        tickFormat: number => axisValue(number, spec.axisUnit),
        grid: false,
    };
}

function marks(spec, shown) {
    const look = styles(spec);
    const points = [];
    const list = [Plot.gridY({ stroke: 'var(--grid)', strokeOpacity: 1 })];
    spec.series.forEach((series, index) => {
        if (!shown.has(index))
            return;
        const { colour, dash } = look[index];
        const own = series.points.map(point => ({ ...point, of: label(spec, series) }));
        if (own.some(point => point.high > point.low))
            list.push(Plot.areaY(own, { x: 'x', y1: 'low', y2: 'high', fill: colour, fillOpacity: 0.12 }));
        list.push(Plot.lineY(own, { x: 'x', y: 'y', stroke: colour, strokeWidth: 2, strokeDasharray: dash,
                                    className: 'curve' }));
        list.push(Plot.dot(own, { x: 'x', y: 'y', fill: colour, r: own.length > 40 ? 0 : 2.5 }));
        points.push(...own);
    });
    const quoted = (spec.quoted || []).map(point => ({ ...point, of: `paper: ${point.name}` }));
    list.push(Plot.dot(quoted, { x: 'x', y: 'y', symbol: 'diamond2', r: 5, fill: 'var(--surface)',
                                 stroke: 'var(--text)', strokeWidth: 2 }));
    points.push(...quoted);
    list.push(Plot.tip(points, Plot.pointer({
        x: 'x', y: 'y', fill: 'var(--surface)', stroke: 'var(--border)', fontSize: 12,
        className: 'tip',
        title: point => describe(spec, point),
    })));
    return list;
}

function describe(spec, point) {
    const spread = point.high > point.low ? ` (${value(point.low)} to ${value(point.high)})` : '';
    return `${point.of}\n${spec.axis} ${axisValue(point.x, spec.axisUnit)}: ` +
        `${value(point.y)} ${spec.unit}${spread}`;
}

/* The description for screen readers; the table has the values. */
function summary(spec) {
    const names = spec.series.map(series => label(spec, series));
    return `Chart: ${unitOf(spec.quantity, spec.unit)} by ${unitOf(spec.axis, spec.axisUnit)}. ` +
        `${count(names.length, 'curve')}: ${names.join(', ')}. The table below lists the values.`;
}

/* A screen reader treats the chart as one image, so the labels of its parts are removed. */
function hideParts(svg) {
    svg.querySelectorAll('g[aria-label]').forEach(part => part.removeAttribute('aria-label'));
}

function draw(spec, shown, width) {
    const svg = Plot.plot({
        width,
        height: HEIGHT,
        marginLeft: 56,
        marginBottom: 40,
        marginTop: 28,
        marginRight: 20,
        ariaLabel: summary(spec),
        x: axis(spec, width),
        y: {
            type: spec.logY ? 'log' : 'linear',
            zero: !spec.logY,
            nice: true,
            label: `↑ ${unitOf(spec.quantity, spec.unit)}`,
            tickFormat: value,
            ticks: 6,
        },
        marks: marks(spec, shown),
    });
    svg.setAttribute('role', 'img');
    hideParts(svg);
    return svg;
}

/* Arrow keys act as the pointer does: left and right along a curve, up and down between curves. */
function keys(view, spec) {
    let curve = 0;
    let index = -1;
    return event => {
        const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
        const curves = [...view.shown].filter(i => spec.series[i].points.length);
        if (!step || !curves.length)
            return;
        event.preventDefault();
        curve = (curve + step[0] + curves.length) % curves.length;
        const { points } = spec.series[curves[curve]];
        index = Math.min(Math.max(index + step[1], 0), points.length - 1);
        const box = view.svg.getBoundingClientRect();
        const scale = box.width / view.svg.viewBox.baseVal.width;
        view.svg.dispatchEvent(new PointerEvent('pointermove', {
            pointerType: 'mouse', bubbles: true,
            clientX: box.left + scale * view.svg.scale('x').apply(points[index].x),
            clientY: box.top + scale * view.svg.scale('y').apply(points[index].y),
        }));
    };
}

function legend(spec, view, redraw) {
    if (spec.series.length < 2 && !spec.quoted?.length)
        return null;
    const look = styles(spec);
    const boxes = spec.series.map((series, index) => element('label', {},
        element('input', {
            type: 'checkbox', checked: true,
            onchange: event => {
                view.shown[event.target.checked ? 'add' : 'delete'](index);
                redraw();
            },
        }),
        sample(look[index]), label(spec, series)));
    if (spec.quoted?.length)
        boxes.push(element('span', { class: 'quoted' }, '◇ quoted in the paper'));
    return element('fieldset', { class: 'legend' }, element('legend', {}, 'Curves'), boxes);
}

function sample({ colour, dash }) {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
    for (const [key, value] of Object.entries({ width: 26, height: 10, 'aria-hidden': 'true' }))
        svg.setAttribute(key, value);
    for (const [key, value] of Object.entries({ x1: 0, x2: 26, y1: 5, y2: 5, 'stroke-width': 3,
                                                style: `stroke:${colour}`, 'stroke-dasharray': dash }))
        line.setAttribute(key, value);
    svg.append(line);
    return svg;
}

function dataTable(spec) {
    const positions = [...new Set(spec.series.flatMap(series => series.points.map(point => point.x)))];
    const columns = [{ title: unitOf(spec.axis, spec.axisUnit), text: x => axisValue(x, spec.axisUnit) }];
    for (const series of spec.series) {
        const values = new Map(series.points.map(point => [point.x, point.y]));
        columns.push({ title: label(spec, series), number: true, text: x => value(values.get(x)) });
    }
    return element('details', { class: 'data' },
                   element('summary', {}, `Table: ${unitOf(spec.quantity, spec.unit)}`),
                   table(`${spec.title}, ${unitOf(spec.quantity, spec.unit)}`, columns,
                         positions.sort((a, b) => a - b)));
}

const STATISTICS = { median: 'median', p99: '99th percentile', p999: '99.9th percentile', max: 'maximum',
                     min: 'minimum', mean: 'mean' };

/* Whether the samples of any point differ, so that percentiles tell something. */
const hasSpread = spec => spec.series.some(series => series.points.some(point =>
    point.statistics && point.statistics.max > point.statistics.min));

/* The curves of one statistic. The band is that of the median. */
function ofStatistic(spec, name) {
    if (name === 'median')
        return spec;
    const points = series => series.points.filter(point => point.statistics)
        .map(point => ({ x: point.x, y: point.statistics[name] }));
    return { ...spec, quantity: `${spec.quantity}, ${STATISTICS[name]}`,
             series: spec.series.map(series => ({ ...series, points: points(series) })) };
}

function chooser(spec, choose) {
    if (!hasSpread(spec))
        return null;
    return element('label', { class: 'statistic' }, 'Curve of the ',
                   element('select', { onchange: event => choose(event.target.value) },
                           Object.entries(STATISTICS).map(([name, text]) => element('option', { value: name }, text))));
}

function saved(spec) {
    const statistics = Object.keys(spec.series[0]?.points[0]?.statistics ?? {});
    const head = ['curve', 'run', unitOf(spec.axis, spec.axisUnit), unitOf(spec.quantity, spec.unit), ...statistics];
    const rows = spec.series.flatMap(series => series.points.map(point =>
        [series.name, series.run, point.x, point.y, ...statistics.map(name => point.statistics?.[name])]));
    const quoted = (spec.quoted ?? []).map(point => [point.name, 'paper', point.x, point.y]);
    return csvLink(spec.title, head, [...rows, ...quoted]);
}

/* Points are stored in the order of measurement; a curve is drawn from left to right. */
function ordered(series) {
    return { ...series, points: [...series.points].sort((a, b) => a.x - b.x) };
}

/* A chart is drawn when it is scrolled near the viewport, and before printing. */
const waiting = new Map();
const observer = new IntersectionObserver(entries => {
    for (const entry of entries) {
        if (entry.isIntersecting)
            drawNow(entry.target);
    }
}, { rootMargin: '800px' });

function drawNow(node) {
    waiting.get(node)?.();
    waiting.delete(node);
    observer.unobserve(node);
}

addEventListener('beforeprint', () => [...waiting.keys()].forEach(drawNow));

export function chart(given) {
    const whole = { ...given, series: given.series.map(ordered) };
    const spec = { ...whole };
    const view = { shown: new Set(spec.series.keys()), svg: null };
    const output = element('output', { class: 'value', 'aria-live': 'polite' });
    const plot = element('div', { class: 'plot', tabindex: 0, role: 'group',
                                  'aria-label': `${spec.title}: chart, arrow keys read its points`,
                                  style: `min-height:${HEIGHT}px` });
    const redraw = () => {
        const svg = draw(spec, view.shown, Math.max(plot.clientWidth, WIDTH_MIN));
        view.svg = svg;
        svg.addEventListener('input', () => {
            const point = svg.value;
            hideParts(svg);
            output.textContent = point ? describe(spec, point).replace('\n', ', ') : '';
        });
        plot.replaceChildren(svg);
    };
    const data = element('div', {}, dataTable(spec));
    const choose = name => {
        Object.assign(spec, ofStatistic(whole, name));
        data.replaceChildren(dataTable(spec));
        redraw();
    };
    plot.addEventListener('keydown', keys(view, spec));
    waiting.set(plot, () => {
        let width = plot.clientWidth;
        redraw();
        new ResizeObserver(() => {
            if (plot.clientWidth === width)
                return;
            width = plot.clientWidth;
            redraw();
        }).observe(plot);
    });
    observer.observe(plot);
    return element('figure', { class: 'chart' },
                   element('figcaption', {}, spec.title, ' ', saved(whole)), chooser(whole, choose), plot, output,
                   legend(spec, view, redraw), data);
}
