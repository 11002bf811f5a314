<?php
/**
 * Which class a product has, and which it had when it was ordered.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * The field of products and of their categories, in their forms, and in the list with Quick Edit and the bulk edit.
 * Each item of an order keeps the class: a product can lose it, or be deleted, while its order waits.
 */
final class Products {
	const META  = '_countersign_class';
	const NONCE = 'countersign_class_nonce';
	// What the lists' forms send if nothing is to be changed.
	const KEEP  = '-';

	/** Add the fields. */
	public static function register(): void {
		add_action( 'woocommerce_product_options_general_product_data', array( self::class, 'show_product_field' ) );
		add_action( 'woocommerce_admin_process_product_object', array( self::class, 'save_product_field' ) );
		add_action( 'product_cat_add_form_fields', array( self::class, 'show_category_field' ) );
		add_action( 'product_cat_edit_form_fields', array( self::class, 'show_category_field' ) );
		add_action( 'created_product_cat', array( self::class, 'save_category_field' ) );
		add_action( 'edited_product_cat', array( self::class, 'save_category_field' ) );
		add_filter( 'manage_edit-product_columns', array( self::class, 'add_column' ), 20 );
		add_action( 'manage_product_posts_custom_column', array( self::class, 'show_cell' ), 10, 2 );
		add_action( 'woocommerce_product_quick_edit_end', array( self::class, 'show_list_field' ) );
		add_action( 'woocommerce_product_bulk_edit_end', array( self::class, 'show_list_field' ) );
		add_action( 'woocommerce_product_quick_edit_save', array( self::class, 'save_list_field' ) );
		add_action( 'woocommerce_product_bulk_edit_save', array( self::class, 'save_list_field' ) );
		// WC_Order_Item::save(), by which every way of making an order stores its items.
		add_action( 'woocommerce_before_order_item_object_save', array( self::class, 'keep_class' ) );
		add_filter( 'woocommerce_hidden_order_itemmeta', array( self::class, 'hide_class' ) );
	}

	/** The classes to choose from, by their word in the API. */
	public static function choices(): array {
		$choices = array(
			''                              => __( 'None', 'countersign-woocommerce' ),
			'accessory'                     => __( 'Accessory', 'countersign-woocommerce' ),
			'firearm_accessory'             => __( 'Firearm accessory', 'countersign-woocommerce' ),
			'manufacturing_machine'         => __( 'Manufacturing machine', 'countersign-woocommerce' ),
			'firearm_manufacturing_machine' => __( 'Firearm manufacturing machine', 'countersign-woocommerce' ),
			'barrel'                        => __( 'Barrel', 'countersign-woocommerce' ),
		);
		/**
		 * Filters the classes that a product can have: your notices may name others.
		 *
		 * @param array $choices Labels by class.
		 */
		return (array) apply_filters( 'countersign_product_classes', $choices );
	}

	/**
	 * The classes of products: their own, else all of their categories and of those above.
	 *
	 * @param int[] $product_ids Ids of products, not of variations.
	 * @return string[] Sorted, each once.
	 */
	public static function classes_of( array $product_ids ): array {
		$classes = array();
		foreach ( array_unique( array_filter( $product_ids ) ) as $id ) {
			$product = wc_get_product( $id );
			$own     = $product ? (string) $product->get_meta( self::META ) : '';
			if ( '' !== $own ) {
				$classes[] = $own;
				continue;
			}
			$terms = get_the_terms( $id, 'product_cat' );
			foreach ( is_array( $terms ) ? $terms : array() as $term ) {
				foreach ( array_merge( array( $term->term_id ), get_ancestors( $term->term_id, 'product_cat', 'taxonomy' ) ) as $one ) {
					$classes[] = (string) get_term_meta( $one, self::META, true );
				}
			}
		}
		$classes = array_values( array_unique( array_filter( $classes ) ) );
		sort( $classes );
		return $classes;
	}

	/** How many products and categories have a class of their own. */
	public static function count_classed(): int {
		global $wpdb;
		return (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM {$wpdb->postmeta} WHERE meta_key = %s AND meta_value <> ''", self::META ) )
			+ (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM {$wpdb->termmeta} WHERE meta_key = %s AND meta_value <> ''", self::META ) );
	}

	/** The field of a product. */
	public static function show_product_field(): void {
		echo '<div class="options_group">';
		woocommerce_wp_select(
			array(
				'id'          => self::META,
				'label'       => __( 'Countersign class', 'countersign-woocommerce' ),
				'options'     => self::choices(),
				'desc_tip'    => true,
				'description' => __( 'What the law calls this product. None: that of its categories.', 'countersign-woocommerce' ),
			)
		);
		wp_nonce_field( self::NONCE, self::NONCE, false );
		echo '</div>';
	}

	/**
	 * Store the field of a product, which WooCommerce saves afterwards.
	 *
	 * @param \WC_Product $product The product.
	 */
	public static function save_product_field( $product ): void {
		$class = self::posted_class();
		if ( null !== $class && current_user_can( 'edit_products' ) ) {
			$product->update_meta_data( self::META, $class );
		}
	}

	/**
	 * The field in the form of a category.
	 *
	 * @param \WP_Term|string $term The category; the name of the taxonomy: a new one.
	 */
	public static function show_category_field( $term ): void {
		$is_new = ! $term instanceof \WP_Term;
		$chosen = $is_new ? '' : (string) get_term_meta( $term->term_id, self::META, true );
		echo $is_new ? '<div class="form-field">' : '<tr class="form-field"><th scope="row"></th><td>';
		wp_nonce_field( self::NONCE, self::NONCE, false );
		echo '<label for="countersign-class">' . esc_html__( 'Countersign class', 'countersign-woocommerce' ) . '</label>';
		echo '<select id="countersign-class" name="' . esc_attr( self::META ) . '">';
		foreach ( self::choices() as $class => $label ) {
			echo '<option value="' . esc_attr( $class ) . '"' . selected( $chosen, $class, false ) . '>' . esc_html( $label ) . '</option>';
		}
		echo '</select>', $is_new ? '</div>' : '</td></tr>';
	}

	/**
	 * Store the field of a category.
	 *
	 * @param int $term_id The category.
	 */
	public static function save_category_field( $term_id ): void {
		$class = self::posted_class();
		if ( null !== $class && current_user_can( 'edit_product_terms' ) ) {
			update_term_meta( (int) $term_id, self::META, $class );
		}
	}

	/** The class that a form sent; null if it is not one of ours. */
	private static function posted_class(): ?string {
		if ( ! isset( $_POST[ self::META ], $_POST[ self::NONCE ] )
			|| ! wp_verify_nonce( sanitize_key( $_POST[ self::NONCE ] ), self::NONCE ) ) {
			return null;
		}
		$class = sanitize_key( wp_unslash( $_POST[ self::META ] ) );
		return array_key_exists( $class, self::choices() ) ? $class : null;
	}

	/**
	 * Add the column.
	 *
	 * @param array $columns Labels by name.
	 */
	public static function add_column( $columns ) {
		return $columns + array( 'countersign' => __( 'Countersign class', 'countersign-woocommerce' ) );
	}

	/**
	 * One cell: what counts, also if it is that of a category.
	 *
	 * @param string $column     The column.
	 * @param int    $product_id The product.
	 */
	public static function show_cell( $column, $product_id ): void {
		if ( 'countersign' === $column ) {
			echo esc_html( Words::classes( self::classes_of( array( (int) $product_id ) ) ) );
		}
	}

	/** The field of both forms. It stands at “no change”, so that nothing is lost by saving something else. */
	public static function show_list_field(): void {
		echo '<label class="alignleft" style="clear:both"><span class="title">' . esc_html__( 'Countersign class', 'countersign-woocommerce' ) . '</span><span class="input-text-wrap"><select name="' . esc_attr( self::META ) . '">';
		echo '<option value="' . esc_attr( self::KEEP ) . '">' . esc_html__( '— No change —', 'countersign-woocommerce' ) . '</option>';
		foreach ( self::choices() as $class => $label ) {
			echo '<option value="' . esc_attr( $class ) . '">' . esc_html( $label ) . '</option>';
		}
		echo '</select></span></label>';
	}

	/**
	 * Store the field of a product.
	 *
	 * @param \WC_Product $product The product.
	 */
	public static function save_list_field( $product ): void {
		$class = wp_unslash( $_REQUEST[ self::META ] ?? self::KEEP ); // phpcs:ignore WordPress.Security -- WooCommerce has checked the nonce, and only one of the choices is stored.
		if ( is_string( $class ) && array_key_exists( $class, self::choices() ) && current_user_can( 'edit_product', $product->get_id() ) ) {
			$product->update_meta_data( self::META, $class );
			$product->save_meta_data();
		}
	}

	/**
	 * Keep the classes of the product with the item; what was kept before stays.
	 *
	 * @param \WC_Order_Item $item The item, before it is saved.
	 */
	public static function keep_class( $item ): void {
		$classes = $item instanceof \WC_Order_Item_Product ? self::classes_of_items( array( $item ) ) : array();
		if ( array() !== $classes ) {
			$item->update_meta_data( self::META, implode( ' ', $classes ) );
		}
	}

	/**
	 * The classes of items: those that they have kept, and those that their products have now.
	 *
	 * @param \WC_Order_Item[] $items The items.
	 * @return string[] Sorted, each once.
	 */
	public static function classes_of_items( array $items ): array {
		$products = array();
		$kept     = array();
		foreach ( $items as $item ) {
			$products[] = (int) $item->get_product_id();
			$kept[]     = (string) $item->get_meta( self::META );
		}
		$kept    = array_filter( explode( ' ', implode( ' ', $kept ) ) );
		$classes = array_values( array_unique( array_merge( self::classes_of( $products ), $kept ) ) );
		sort( $classes );
		return $classes;
	}

	/**
	 * The page of an order shows the class in its box, and not with every item.
	 *
	 * @param string[] $hidden Names of what is kept with an item.
	 */
	public static function hide_class( $hidden ) {
		$hidden[] = self::META;
		return $hidden;
	}
}
