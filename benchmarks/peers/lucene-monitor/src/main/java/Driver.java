import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultiMatchingQueries;
import org.apache.lucene.monitor.MultipassTermFilteredPresearcher;
import org.apache.lucene.monitor.Presearcher;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermWeightor;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.WildcardQuery;
import org.apache.lucene.util.Version;

/** Lucene Monitor: a query per filter, a document per event, one at a time or in batches. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int BATCH = 1000;

    private final Monitor monitor;
    private final List<String> events;
    private final int batch;

    private Driver(Monitor monitor, List<String> events, int batch) {
        this.monitor = monitor;
        this.events = events;
        this.batch = batch;
    }

    public static void main(String[] args) throws Exception {
        boolean many = args[0].equals("batch");
        List<String> filters = Files.readAllLines(Path.of(args[1]));
        List<String> events = Files.readAllLines(Path.of(args[2]));
        double warmUp = Double.parseDouble(args[3]);
        double limit = Double.parseDouble(args[4]);

        long start = System.nanoTime();
        Monitor monitor = filled(filters);
        double buildSeconds = (System.nanoTime() - start) / 1e9;

        Driver driver = new Driver(monitor, events, many ? BATCH : 1);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        while (orders.readLine() != null) {
            driver.pass(warmUp, null);
            ObjectNode answer = JSON.createObjectNode();
            answer.put("system", many ? "lucene-monitor batch" : "lucene-monitor");
            answer.put("version", Version.LATEST.toString());
            answer.put("filters", filters.size());
            answer.put("build_seconds", buildSeconds);
            driver.pass(limit, answer);
            System.out.println(answer);
        }
        monitor.close();
    }

    private static Monitor filled(List<String> filters) throws IOException {
        List<MonitorQuery> queries = new ArrayList<>();
        Map<String, Integer> frequencies = new HashMap<>();
        for (String line : filters) {
            JsonNode filter = JSON.readTree(line);
            queries.add(new MonitorQuery(filter.get("id").asText(), query(filter.get("tests"))));
            for (JsonNode test : filter.get("tests")) {
                if (test.get("op").asText().equals("=")) {
                    frequencies.merge(test.get("value").asText(), 1, Integer::sum);
                }
            }
        }
        // The two rarest terms of a query are indexed: of the presearchers that were tried, this
        // one runs the fewest queries on the workload `mixed`.
        TermWeightor rarest = TermWeightor.termFreqWeightor(frequencies, 100, 1);
        Presearcher presearcher =
                new MultipassTermFilteredPresearcher(2, 0, rarest, List.of(), Set.of());
        MonitorConfiguration configuration = new MonitorConfiguration();
        configuration.setQueryUpdateBufferSize(BATCH);
        Monitor monitor = new Monitor(new KeywordAnalyzer(), presearcher, configuration);
        monitor.register(queries);
        return monitor;
    }

    private static Query query(JsonNode tests) {
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        for (JsonNode test : tests) {
            all.add(one(test), Occur.FILTER);
        }
        return all.build();
    }

    private static Query one(JsonNode test) {
        String name = test.get("attribute").asText();
        JsonNode value = test.get("value");
        return switch (test.get("op").asText()) {
            case "=" -> value.isTextual()
                    ? new TermQuery(new Term(name, value.asText()))
                    : DoublePoint.newExactQuery(name, value.asDouble());
            case "between" -> DoublePoint.newRangeQuery(
                    name,
                    test.has("low") ? test.get("low").asDouble() : Double.NEGATIVE_INFINITY,
                    test.has("high") ? test.get("high").asDouble() : Double.POSITIVE_INFINITY);
            case "prefix" -> new PrefixQuery(new Term(name, value.asText()));
            case "suffix" -> new WildcardQuery(new Term(name, "*" + value.asText()));
            case "like" -> new WildcardQuery(new Term(name, value.asText().replace('%', '*')));
            default -> throw new IllegalArgumentException(test.toString());
        };
    }

    private static Document document(String line) throws IOException {
        Document document = new Document();
        Iterator<Map.Entry<String, JsonNode>> fields = JSON.readTree(line).fields();
        while (fields.hasNext()) {
            Map.Entry<String, JsonNode> field = fields.next();
            if (field.getValue().isTextual()) {
                document.add(
                        new StringField(
                                field.getKey(), field.getValue().asText(), Field.Store.NO));
            } else if (field.getValue().isNumber()) {
                document.add(new DoublePoint(field.getKey(), field.getValue().asDouble()));
            }
        }
        return document;
    }

    /** All events once, or as many as the seconds allow. */
    private void pass(double seconds, ObjectNode answer) throws IOException {
        long[] spent = new long[events.size()];
        int done = 0;
        int timed = 0;
        long matches = 0;
        long start = System.nanoTime();
        long end = start + (long) (seconds * 1e9);
        while (done < events.size()) {
            long begun = System.nanoTime();
            if (begun > end) {
                break;
            }
            int next = Math.min(events.size(), done + batch);
            matches += matches(events.subList(done, next));
            spent[timed++] = System.nanoTime() - begun;
            done = next;
        }
        double taken = (System.nanoTime() - start) / 1e9;
        if (answer == null) {
            return;
        }
        answer.put("events", done);
        answer.put("matches", matches);
        answer.put("seconds", taken);
        answer.put("us_per_event", taken * 1e6 / done);
        if (batch == 1) {
            Arrays.sort(spent, 0, timed);
            answer.put("p50_us", spent[timed / 2] / 1e3);
            answer.put("p99_us", spent[(int) (timed * 99L / 100)] / 1e3);
        }
    }

    private long matches(List<String> lines) throws IOException {
        if (lines.size() == 1) {
            Document one = document(lines.get(0));
            return monitor.match(one, QueryMatch.SIMPLE_MATCHER).getMatchCount();
        }
        Document[] documents = new Document[lines.size()];
        for (int at = 0; at < documents.length; at++) {
            documents[at] = document(lines.get(at));
        }
        MultiMatchingQueries<QueryMatch> found =
                monitor.match(documents, QueryMatch.SIMPLE_MATCHER);
        long count = 0;
        for (int at = 0; at < documents.length; at++) {
            count += found.getMatchCount(at);
        }
        return count;
    }
}
